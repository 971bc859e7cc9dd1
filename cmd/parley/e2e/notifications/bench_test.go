package notifications

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/cmd/parley/parleytest"
)

// These benchmarks run the example configuration for notifications over the loopback interface, with synchronous=FULL.
// The program, the three platforms and the senders share the machine's cores.

// newOpsBench starts a server with that configuration.
func newOpsBench(b *testing.B) *ops {
	b.Helper()
	o := newOps(b, "[log]\nlevel = \"warn\"\n[limits]\noutbound = 10000000\n", unpaced)
	path, err := parleytest.Binary()
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(o.File)
	if err != nil {
		b.Fatal(err)
	}
	// The token may send to every chat, so that each message can have a chat of its own.
	wide := strings.Replace(string(text), `may = ["send:ci"]`, `may = ["send"]`, 1)
	if err := os.WriteFile(o.File, []byte(wide), 0o600); err != nil {
		b.Fatal(err)
	}
	parleytest.Started(b, path, "--home", o.Home, "--config", o.File, "serve")
	o.Ready(b)
	return o
}

// post posts a body and returns an error unless the server accepts it.
func (o *ops) post(path, body, secret string) error {
	got, err := o.TryAsk("POST", path, body, parleytest.Bearer(opsSecrets[secret])...)
	if err == nil && got.Status != http.StatusAccepted {
		err = fmt.Errorf("answered %d: %s", got.Status, got.Body)
	}
	return err
}

// BenchmarkPostToPlatform measures the time from the beginning of a POST to the moment at which the platform has the
// request, one post after another.
func BenchmarkPostToPlatform(b *testing.B) {
	ctx := context.Background()
	for name, one := range map[string]func(o *ops, n int) (time.Time, error){
		"message": func(o *ops, n int) (time.Time, error) {
			chat := int64(n + 1000)
			if err := o.post("/v1/messages", fmt.Sprintf(`{"to": "telegram:%d", "text": "hello"}`, chat), "ci"); err != nil {
				return time.Time{}, err
			}
			sent, err := o.Telegram.WaitSent(ctx, chat, 1)
			if err != nil {
				return time.Time{}, err
			}
			return sent[0].At, nil
		},
		"alert": func(o *ops, n int) (time.Time, error) {
			if err := o.post("/webhooks/alertmanager", alertOf(fmt.Sprint("A", n), "warning", "firing", time.Now()), "alertmanager"); err != nil {
				return time.Time{}, err
			}
			sent, err := o.slack.WaitSent(ctx, buildsSlack, n+1)
			if err != nil {
				return time.Time{}, err
			}
			return slackTime(sent[n]), nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			o := newOpsBench(b)
			var took []time.Duration
			n := 0
			for b.Loop() {
				began := time.Now()
				at, err := one(o, n)
				if err != nil {
					b.Fatal(err)
				}
				n++
				took = append(took, at.Sub(began))
			}
			slices.Sort(took)
			parleytest.Percentiles(b, took)
		})
	}
}

// BenchmarkPostsAccepted measures how many posts from 64 senders the server accepts and stores per second, while the
// platform works and while it is down.
func BenchmarkPostsAccepted(b *testing.B) {
	const posters, batch = 64, 2000
	for _, down := range []bool{false, true} {
		b.Run(map[bool]string{false: "delivering", true: "platform down"}[down], func(b *testing.B) {
			o := newOpsBench(b)
			if down {
				_ = o.Telegram.Close()
			}
			posted, accepting := 0, time.Duration(0)
			for b.Loop() {
				began := time.Now()
				var posting sync.WaitGroup
				for p := range posters {
					posting.Go(func() {
						for n := p; n < batch; n += posters {
							body := fmt.Sprintf(`{"to": "telegram:%d", "text": "hello %d"}`, 1+n%500, n)
							if err := o.post("/v1/messages", body, "ci"); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				posting.Wait()
				accepting += time.Since(began)
				posted += batch
				for !down && o.Telegram.Sends() < posted {
					time.Sleep(time.Millisecond) // measuring, not testing
				}
			}
			b.ReportMetric(float64(posted)/accepting.Seconds(), "posts/s")
			if !down {
				b.ReportMetric(float64(posted)/b.Elapsed().Seconds(), "deliveries/s")
			}
		})
	}
}

// BenchmarkTenThousandAlerts measures how long 10,000 alerts take to three platforms each.
func BenchmarkTenThousandAlerts(b *testing.B) {
	const alerts, posters = 10_000, 64
	for b.Loop() {
		o := newOpsBench(b)
		began := time.Now()
		var posting sync.WaitGroup
		for p := range posters {
			posting.Go(func() {
				for n := p; n < alerts; n += posters {
					if err := o.post("/webhooks/alertmanager", alertOf(fmt.Sprint("A", n), "critical", "firing", began), "alertmanager"); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		posting.Wait()
		b.ReportMetric(alerts/time.Since(began).Seconds(), "posts/s")
		for o.sends() < 3*alerts {
			time.Sleep(50 * time.Millisecond) // measuring, not testing
		}
		b.ReportMetric(3*alerts/time.Since(began).Seconds(), "deliveries/s")
	}
}
