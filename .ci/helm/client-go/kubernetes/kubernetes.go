// Package kubernetes is empty: Helm names it only for its version.
package kubernetes
