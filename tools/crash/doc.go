// Package crash lets tests of crashes kill or stop the process at a named point.
//
// It also provides a tool of which a test notices every repeated run. Both exist only in a build
// with the tag chaos (chaos.go); in other builds the functions return nothing (nochaos.go).
package crash
