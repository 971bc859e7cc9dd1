// Command simulate shows how a fleet of any size would perform, based on what an answer costs each of its parts.
//
// It queues messages at gateways, workers, Redis and PostgreSQL as the real program does, with the costs that
// BenchmarkFleetCosts measured. docs/scale.md shows its output, and says what the simulation leaves out.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

func main() {
	c := measured()
	flag.DurationVar(&c.gateway, "gateway", c.gateway, "processor time of an answer in the gateway")
	flag.DurationVar(&c.worker, "worker", c.worker, "processor time of an answer in the worker")
	flag.DurationVar(&c.redis, "redis", c.redis, "processor time of an answer in Redis")
	flag.DurationVar(&c.postgres, "postgres", c.postgres, "processor time of an answer in PostgreSQL")
	flag.DurationVar(&c.reread, "reread", c.reread, "processor time of reading a log again, in the worker and in PostgreSQL")
	flag.DurationVar(&c.model, "model", c.model, "how long a model takes on average")
	flag.Parse()
	showCapacities(os.Stdout, c)
	showFleets(os.Stdout, c)
}

// measured returns the costs that BenchmarkFleetCosts measured.
func measured() costs {
	return costs{
		gateway: 420 * time.Microsecond, worker: 700 * time.Microsecond, redis: 400 * time.Microsecond, postgres: 750 * time.Microsecond,
		reread: 500 * time.Microsecond, model: 6 * time.Second,
	}
}

// perPerson assumes that a person says ten things a day, a tenth of them in the busiest hour.
const perPerson = 10 * 0.1 / 3600

// showCapacities prints how many answers a second each part can handle, and how many people that is.
func showCapacities(to io.Writer, c costs) {
	_, _ = fmt.Fprintf(to, "An answer costs a gateway %v, a worker %v, Redis %v and PostgreSQL %v of a core; a model takes %v.\n\n", c.gateway, c.worker, c.redis, c.postgres, c.model)
	_, _ = fmt.Fprintln(to, "What each part can do, in answers a second, and for how many people:")
	w := tabwriter.NewWriter(to, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, part := range []struct {
		name  string
		cores int
		each  time.Duration
	}{
		{"a gateway of 2 cores", 2, c.gateway}, {"a worker of 2 cores", 2, c.worker}, {"10 workers", 20, c.worker}, {"100 workers", 200, c.worker},
		{"one Redis", 1, c.redis}, {"16 shards", 16, c.redis}, {"PostgreSQL on 8 cores", 8, c.postgres}, {"PostgreSQL on 64 cores", 64, c.postgres},
	} {
		rate := float64(part.cores) / part.each.Seconds()
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.1f million\t\n", part.name, rate, rate/perPerson/1e6)
	}
	_ = w.Flush()
}

// showFleets prints how the fleets of some plans perform.
func showFleets(to io.Writer, c costs) {
	_, _ = fmt.Fprintln(to, "\nWhat fleets do in two minutes (the busiest of each kind; delays without the model's time):")
	w := tabwriter.NewWriter(to, 0, 4, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "plan\tanswers/s\tgateway\tworker\tshard\tPostgreSQL\thalf\t99 of 100\tat a failure, 99 of 100\tlongest\tmoved\tunanswered\t")
	for _, p := range plans(c) {
		r := simulate(p.plan, 1)
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.0f %%\t%.0f %%\t%.0f %%\t%.0f %%\t%s\t%s\t%s\t%s\t%d\t%d\t\n", p.name, p.perSecond, 100*r.gateway, 100*r.worker, 100*r.shard, 100*r.postgres,
			short(at(r.delays, 0.5)), short(at(r.delays, 0.99)), short(at(r.late, 0.99)), short(at(r.delays, 1)), r.moved, r.said-r.answered)
	}
	_ = w.Flush()
}

type namedPlan struct {
	name string
	plan
}

// plans returns the plans of the output.
func plans(c costs) []namedPlan {
	one := plan{gateways: 1, workers: 1, shards: 1, postgres: 8, perSecond: 100, lasts: 2 * time.Minute, sessions: 20_000, costs: c}
	with := func(name string, change func(*plan)) namedPlan {
		p := one
		change(&p)
		return namedPlan{name, p}
	}
	large := func(p *plan) {
		p.gateways, p.workers, p.shards, p.postgres, p.sessions, p.perSecond = 100, 1000, 16, 64, 1_000_000, 10e6*perPerson
	}
	return []namedPlan{
		with("1 worker", func(*plan) {}),
		with("1 worker, a million people", func(p *plan) { p.perSecond, p.sessions = 1e6*perPerson, 200_000 }),
		with("2 workers, a million people", func(p *plan) { p.workers, p.perSecond, p.sessions = 2, 1e6*perPerson, 200_000 }),
		with("2 workers, one dies", func(p *plan) { p.workers, p.dead = 2, 1 }),
		with("10 workers, one Redis, 80 % of it", func(p *plan) {
			p.gateways, p.workers, p.postgres, p.sessions, p.perSecond = 4, 10, 16, 200_000, 0.8/c.redis.Seconds()
		}),
		with("100 gateways, 1,000 workers, 16 shards, 10 million people", large),
		with("the same, 100 workers die", func(p *plan) { large(p); p.dead = 100 }),
		with("the same, a shard fails over in 10 s", func(p *plan) { large(p); p.shardAway = 10 * time.Second }),
		with("the same, PostgreSQL fails over in 10 s", func(p *plan) { large(p); p.pgOut = 10 * time.Second }),
		with("the same, on one Redis", func(p *plan) { large(p); p.shards = 1 }),
	}
}

// at returns the delay that the given part of all answers doesn't exceed.
func at(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// short formats a duration with few digits.
func short(d time.Duration) string {
	if d < 100*time.Millisecond {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
