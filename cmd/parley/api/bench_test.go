package api_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkPost measures how long the API takes to accept messages durably over HTTP, with one client and with many.
// The clients run in the same process.
func BenchmarkPost(b *testing.B) {
	for _, clients := range []int{1, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			x := newRig(b)
			var n atomic.Int64
			var mu sync.Mutex
			var took []time.Duration
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					var mine []time.Duration
					for {
						i := n.Add(1)
						if i > int64(b.N) {
							break
						}
						began := time.Now()
						if err := x.postOnce(i); err != nil {
							b.Error(err)
							break
						}
						mine = append(mine, time.Since(began))
					}
					mu.Lock()
					defer mu.Unlock()
					took = append(took, mine...)
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "posts/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func (x *rig) postOnce(i int64) error {
	req, err := http.NewRequestWithContext(x.t.Context(), "POST", x.base+"/v1/messages",
		strings.NewReader(fmt.Sprintf(`{"to": "slack:C%d", "text": "build %d is green"}`, i%1000, i)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+opsToken)
	req.Header.Set("Idempotency-Key", fmt.Sprint(i))
	resp, err := x.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s", resp.Status)
	}
	return nil
}
