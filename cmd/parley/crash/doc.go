// Package crash lets tests of crashes kill or stop the process at a named point.
//
// It also has a tool of which tests notice every repetition. Both exist only in a build
// with the tag chaos (chaos.go); in all others they are empty (nochaos.go).
package crash
