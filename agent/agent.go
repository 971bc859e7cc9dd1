// Package agent is what answers: it leases sessions, runs durable turns and asks models.
package agent
