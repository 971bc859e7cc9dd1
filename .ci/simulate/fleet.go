package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The costs are the time that an answer takes of each part's processor, and its other waits.
type costs struct {
	gateway, worker, redis, postgres time.Duration // time of one core for a whole answer
	reread                           time.Duration // extra time of a worker and of PostgreSQL each, to read a session's log
	model                            time.Duration // how long a model takes on average
}

// A plan describes a fleet and its load.
type plan struct {
	gateways, workers, shards int
	postgres                  int // number of PostgreSQL's cores
	perSecond                 float64
	lasts                     time.Duration
	sessions                  int
	costs                     costs

	// These fields say what fails in the middle: how many workers die, and how long one shard and PostgreSQL are away.
	dead             int
	shardAway, pgOut time.Duration
}

// takeover is how long the lease of a dead worker lasts.
const takeover = 5 * time.Second

// A result describes how the fleet performed.
type result struct {
	said, answered int
	delays         []time.Duration // the delay of each answer without the model, sorted
	late           []time.Duration // the same, for messages within a minute after the failure
	moved          int             // number of turns that continued elsewhere because their worker died
	gateway        float64         // the used part of the time of the busiest gateway
	worker         float64         // the same for the busiest worker
	shard          float64         // the same for the busiest shard
	postgres       float64
}

// A fleet carries out a plan.
type fleet struct {
	plan
	clock    clock
	random   *rand.Rand
	gateway  []*machine
	worker   []*machine
	deadOnes map[int]bool
	shard    []*machine
	database *machine
	last     map[int]int  // by session: the worker that had it last
	waiting  map[int]bool // by session: whether somebody waits for an answer
	result   result
}

// A message is on its way through the fleet.
type message struct {
	session int
	said    time.Duration
	model   time.Duration // how long the model takes for it
	worker  int
	begun   int // how often a worker has begun with it
}

// simulate carries out a plan. The same seed gives the same result.
func simulate(p plan, seed uint64) result {
	f := &fleet{plan: p, random: rand.New(rand.NewPCG(seed, 1)), last: map[int]int{}, deadOnes: map[int]bool{}, waiting: map[int]bool{}}
	machines := func(n, cores int) (all []*machine) {
		for range n {
			all = append(all, &machine{clock: &f.clock, cores: cores})
		}
		return all
	}
	f.gateway, f.worker, f.shard = machines(p.gateways, 2), machines(p.workers, 2), machines(p.shards, 1)
	f.database = machines(1, p.postgres)[0]
	f.sayNext()
	f.clock.after(p.lasts/2, f.fail)
	f.clock.run()
	f.sum()
	return f.result
}

// sayNext makes somebody say something, and schedules the next message.
func (f *fleet) sayNext() {
	if f.clock.now > f.lasts {
		return
	}
	m := &message{session: f.freeSession(), said: f.clock.now, model: time.Duration(f.random.ExpFloat64() * float64(f.costs.model))}
	f.result.said++
	f.gateway[m.session%f.gateways].work(f.costs.gateway/2, func() {
		f.shardOf(m).work(f.costs.redis/4, func() { f.claim(m) }) // this comes after publishing
	})
	f.clock.after(time.Duration(f.random.ExpFloat64()/f.perSecond*float64(time.Second)), f.sayNext)
}

func (f *fleet) shardOf(m *message) *machine { return f.shard[m.session%f.shards] }

// freeSession returns a session in which nobody waits for an answer, and marks it as waiting.
func (f *fleet) freeSession() int {
	for {
		if n := f.random.IntN(f.sessions); !f.waiting[n] {
			f.waiting[n] = true
			return n
		}
	}
}

// claim gives the message to the worker that had its session last, or to any worker.
func (f *fleet) claim(m *message) {
	last, known := f.last[m.session]
	m.worker = last
	cold := !known || f.deadOnes[last]
	for ; !known || f.deadOnes[m.worker]; known = true {
		m.worker = f.random.IntN(f.workers)
	}
	f.last[m.session] = m.worker
	m.begun++
	extra := time.Duration(0)
	if cold {
		extra = f.costs.reread
	}
	begun := m.begun
	onWorker := func(needs time.Duration, then func()) {
		f.worker[m.worker].work(needs, func() {
			if m.begun == begun { // the worker has not died meanwhile
				then()
			}
		})
	}
	f.shardOf(m).work(f.costs.redis/4, func() {
		onWorker(f.costs.worker/2+extra, func() {
			f.database.work(f.costs.postgres/2+extra, func() {
				f.clock.after(m.model, func() {
					onWorker(f.costs.worker/2, func() {
						f.database.work(f.costs.postgres/4, func() { f.shardOf(m).work(f.costs.redis/4, func() { f.answer(m, begun) }) })
					})
				})
			})
		})
	})
	f.watch(m, begun)
}

// watch makes another worker continue if the message's worker dies.
func (f *fleet) watch(m *message, begun int) {
	if f.dead == 0 || m.worker >= f.dead || f.clock.now > f.lasts/2 {
		return
	}
	f.clock.after(f.lasts/2-f.clock.now+takeover, func() {
		if m.begun == begun {
			f.result.moved++
			f.claim(m)
		}
	})
}

// answer sends the answer.
func (f *fleet) answer(m *message, begun int) {
	if m.begun != begun {
		return
	}
	m.begun = -1
	f.gateway[m.session%f.gateways].work(f.costs.gateway/2, func() {
		f.database.work(f.costs.postgres/4, func() {
			f.shardOf(m).work(f.costs.redis/4, func() {
				f.result.answered++
				delete(f.waiting, m.session)
				took := f.clock.now - m.said - m.model
				f.result.delays = append(f.result.delays, took)
				if after := m.said - f.lasts/2; after > -10*time.Second && after < time.Minute {
					f.result.late = append(f.result.late, took)
				}
			})
		})
	})
}

// fail makes the parts fail that the plan names.
func (f *fleet) fail() {
	for n := range f.dead {
		f.deadOnes[n] = true
	}
	if f.shardAway > 0 {
		f.shard[0].away = f.clock.now + f.shardAway
	}
	if f.pgOut > 0 {
		f.database.away = f.clock.now + f.pgOut
	}
}

// sum computes how busy the parts were.
func (f *fleet) sum() {
	busiest := func(all []*machine) (most float64) {
		for _, m := range all {
			most = max(most, m.used(f.lasts))
		}
		return most
	}
	r := &f.result
	r.gateway, r.worker, r.shard, r.postgres = busiest(f.gateway), busiest(f.worker), busiest(f.shard), f.database.used(f.lasts)
	slices.Sort(r.delays)
	slices.Sort(r.late)
}
