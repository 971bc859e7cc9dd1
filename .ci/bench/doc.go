// Package bench measures the bus over Redis side by side with what else one could build it on.
//
// It is a module of its own, so that nobody who builds Parley has to fetch the
// others.
package bench
