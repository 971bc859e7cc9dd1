// Package rest replaces the part of Kubernetes' client that configures access to a cluster, because there is no
// cluster.
package rest

// A Config is never created.
type Config struct{}
