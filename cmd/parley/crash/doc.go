// Package crash is what a build for tests of crashes (the build tag chaos) has more:
// points at which the process kills or stops itself, and a tool of which every
// repetition is noticed. No other build has any of it.
package crash
