package redisbus

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/bus"
)

// When mail comes for a session, its mailbox is offered to the process that had it last (see shared/line.lua). That
// process claims it before anybody else may, or declines it: if it has no room, or far more to do than others.

const (
	// offerLasts is for how long an offer is good, as in shared/line.lua.
	offerLasts = 250 * time.Millisecond
	// declineAfter is how long a process in which nobody waits for mail keeps an offer before it declines.
	declineAfter = 20 * time.Millisecond
	// A process declines offers if it holds more leases than 1.5 times the average of all processes plus leaseSlack. So
	// few sessions move, and processes that join still get their part.
	leaseSlack = 16
)

// An offer is a mailbox that is offered to this process, and until when.
type offer struct {
	key   string
	until time.Time
}

// A fleetLoad is how many leases all processes together hold, and how many processes there are, as the claim script last
// told.
type fleetLoad struct {
	leased, processes int64
}

// makesBusy reports whether a process with that many leases has far more than its part.
func (s fleetLoad) makesBusy(own int) bool {
	return s.processes > 1 && int64(own)*2*s.processes > 3*s.leased+2*leaseSlack*s.processes
}

// handleOffer handles an offer that was published to this process: the length of the topic, and the topic and key.
func (c *claims) handleOffer(text string) {
	length, rest, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return // another release may write it differently, and the mailbox is due soon anyway
	}
	c.takeUp(bus.Topic(rest[:n]), rest[n:])
}

// takeUp claims an offered mailbox for the callers that wait, or declines it.
func (c *claims) takeUp(topic bus.Topic, key string) {
	c.mu.Lock()
	q := c.queues[topic]
	if q == nil || c.ended || q.load.makesBusy(c.leases.countOf(&q.keys)) {
		c.mu.Unlock()
		c.decline(topic, key)
		return
	}
	defer c.mu.Unlock()
	q.offers = append(q.offers, offer{key, time.Now().Add(offerLasts)})
	if q.waiters.Len() > 0 {
		c.fetchSoon(q, "")
		return
	}
	if !q.declining { // the next caller of Claim takes it, unless none comes soon
		q.declining = c.spawn(func() { c.declineIfBusy(topic, q) })
	}
}

// declineIfBusy waits a moment, and declines all offers if nobody waits for mail then.
func (c *claims) declineIfBusy(topic bus.Topic, q *waitQueue) {
	select {
	case <-time.After(declineAfter):
	case <-c.closed:
	}
	c.mu.Lock()
	q.declining = false
	var declined []string
	if q.waiters.Len() == 0 {
		declined = q.dropOffers()
	}
	c.mu.Unlock()
	c.decline(topic, declined...)
}

// dropOffers removes all offers, and returns the keys of those that are still good. The caller holds claims.mu.
func (q *waitQueue) dropOffers() (keys []string) {
	for _, o := range q.goodOffers() {
		keys = append(keys, o.key)
	}
	q.offers = nil
	return keys
}

// goodOffers returns the offers that are still good. It reuses the memory of q.offers, so the caller, who holds
// claims.mu, has to replace q.offers.
func (q *waitQueue) goodOffers() []offer {
	now := time.Now()
	return slices.DeleteFunc(q.offers, func(o offer) bool { return !now.Before(o.until) })
}

// takeOffers removes and returns up to most good offers. The caller holds claims.mu.
func (q *waitQueue) takeOffers(most int) (taken []offer) {
	good := q.goodOffers()
	n := min(most, len(good))
	taken, q.offers = slices.Clone(good[:n]), good[n:]
	return taken
}

// keepOffers puts back, after a run of the claim script, those of its offers for which left returns true: they may still
// be granted. The caller holds claims.mu.
func (q *waitQueue) keepOffers(offers []offer, left func(key string) bool) {
	offers = slices.DeleteFunc(offers, func(o offer) bool { return !left(o.key) })
	q.offers = append(offers, q.offers...)
}

// listenAsClaimer registers this process as one of those that claim the topic's mail.
func (c *claims) listenAsClaimer(k *topicKeys) {
	if channel := k.claimers(); channel != "" {
		c.spawn(func() { c.subscribe(channel) })
	}
}

// isOffered reports whether a mailbox is among the offers. The caller holds claims.mu.
func (q *waitQueue) isOffered(key string) bool {
	return slices.ContainsFunc(q.offers, func(o offer) bool { return o.key == key })
}

// decline lets other processes claim mailboxes that were offered to this process.
func (c *claims) decline(topic bus.Topic, keys ...string) {
	if len(keys) == 0 {
		return
	}
	k := c.keys.topic(topic)
	args := make([]any, len(keys))
	for i, key := range keys {
		args[i] = key
	}
	c.spawnOrRun(func() {
		// If this fails, the mailboxes are due soon, and others look by themselves within maxPollInterval.
		_, _ = c.batcher.run(context.Background(), declineScript, []string{c.keys.clock(), k.due, k.wake}, args...)
	})
}
