// Package helm lints and renders the Helm chart of deploy/helm with Helm's own packages, decodes the result strictly into
// Kubernetes' types, and serves a fleet with it: the real program, in pods that bubblewrap makes as the chart says.
//
// It is a module of its own, so that Helm and Kubernetes stay out of the application's. In place of Kubernetes' client, which
// takes minutes to compile and would only ask a cluster, it has the few names in client-go that Helm needs. "go mod tidy"
// misses packages there which only Helm's own tests use: add -e.
package helm
