// Package crash lets tests of crashes kill or stop the process at a named point.
//
// It also has a tool whose every repetition a test notices. Both exist only in a build
// with the tag chaos (chaos.go); in other builds the functions return nothing
// (nochaos.go).
package crash
