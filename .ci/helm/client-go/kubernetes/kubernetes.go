// Package kubernetes is empty: Helm imports it only for its version.
package kubernetes
