// Package crash lets tests of crashes kill or stop the process at a named point.
//
// It also provides tools that only tests use, lets web_fetch read pages on this machine, and has nodes come
// back sooner. All of that exists only in a build with the tag chaos (chaos.go); in other builds the functions do
// nothing (nochaos.go).
package crash
