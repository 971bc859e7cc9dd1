package parleytest

import (
	"bytes"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// Started starts a program, which ends with the benchmark. It returns the command and its output.
func Started(b *testing.B, path string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	b.Helper()
	cmd, stderr := exec.Command(path, args...), &bytes.Buffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if b.Failed() {
			b.Log(stderr.String())
		}
	})
	return cmd, stderr
}

// Milliseconds reports a measured time as a metric in milliseconds.
func Milliseconds(b *testing.B, name string, d time.Duration) {
	b.ReportMetric(float64(d.Microseconds())/1000, name)
}

// Percentiles reports percentiles of the measured times, each of which is the time of one operation.
func Percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	Milliseconds(b, "p50-ms", took[len(took)/2])
	Milliseconds(b, "p99-ms", took[len(took)*99/100])
}
