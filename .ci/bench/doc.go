// Package bench compares the speed of the bus over Redis with that of other systems that it could be built on.
//
// It is a module of its own, so that nobody who builds Parley has to fetch the libraries of these systems.
package bench
