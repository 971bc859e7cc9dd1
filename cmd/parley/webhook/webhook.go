// Package webhook is what other programs post: alerts, builds and plain JSON, made into messages.
package webhook
