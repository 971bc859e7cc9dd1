package sentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/master"
)

// askTimeout is how long a Sentinel may take to answer.
const askTimeout = time.Second

// A Finder asks Sentinels for the master. go-redis would believe the first answer that it gets, even from a
// Sentinel that is cut off from the others.
type Finder struct {
	name      string
	addresses []string
	clients   []*redis.SentinelClient // clients of the Sentinels, in the order of the addresses
	asking    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	newest int64 // the epoch of the view that was returned last
}

// NewFinder returns a Finder that reaches the Sentinels of an address. It uses the options for dialing,
// but not their user.
func NewFinder(a Address, o *redis.Options) *Finder {
	f := &Finder{name: a.Name, addresses: a.Hosts}
	for _, address := range a.Hosts {
		f.clients = append(f.clients, redis.NewSentinelClient(&redis.Options{
			Addr: address, Username: a.User, Password: a.Password, Dialer: o.Dialer, TLSConfig: o.TLSConfig,
			Protocol: o.Protocol, DisableIdentity: o.DisableIdentity, ContextTimeoutEnabled: true,
			MaxRetries: -1, DialerRetries: 1, DialTimeout: askTimeout, ReadTimeout: askTimeout, WriteTimeout: askTimeout,
			PoolSize: 64, MaxIdleConns: 1,
		}))
	}
	return f
}

// Close ends the connections to the Sentinels.
func (f *Finder) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	var errs []error
	for _, c := range f.clients {
		errs = append(errs, c.Close())
	}
	f.asking.Wait()
	return errors.Join(errs...)
}

// An answer is the answer of one Sentinel.
type answer struct {
	view  master.View
	epoch int64 // the number of the promotion that made it the master
	err   error
}

// View implements master.Finder: it asks all Sentinels.
func (f *Finder) View(ctx context.Context) (v master.View, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	agree, most, epoch := 0, len(f.clients)/2+1, int64(0)
	answers := f.askAll(ctx)
	for range f.clients {
		a := <-answers
		switch {
		case a.err != nil:
			v.Faults = append(v.Faults, a.err.Error())
		case agree == 0 || a.epoch > epoch:
			a.view.Faults = v.Faults
			v, epoch, agree = a.view, a.epoch, 1
		case a.epoch == epoch && a.view.Master == v.Master:
			v.Stable = v.Stable && a.view.Stable
			v.Replicas = max(v.Replicas, a.view.Replicas)
			agree++
		}
		if agree == most {
			break // the remaining answers don't matter
		}
	}
	v.Stable, v.Asked = v.Stable && agree == most, len(f.clients)
	f.mu.Lock()
	defer f.mu.Unlock()
	if agree == 0 || agree < most && epoch < f.newest {
		return master.View{}, fmt.Errorf("no Sentinel says where the master %q is: %s", f.name, strings.Join(v.Faults, "; "))
	}
	f.newest = epoch
	return v, nil
}

// askAll asks all Sentinels, and returns a channel that gets one answer from each.
func (f *Finder) askAll(ctx context.Context) <-chan answer {
	answers := make(chan answer, len(f.clients))
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range f.clients {
		if f.closed {
			answers <- answer{err: redis.ErrClosed}
			continue
		}
		f.asking.Go(func() {
			a := f.ask(ctx, c)
			if a.err != nil {
				a.err = fmt.Errorf("%s: %w", f.addresses[i], a.err)
			}
			answers <- a
		})
	}
	return answers
}

// ask asks one Sentinel.
func (f *Finder) ask(ctx context.Context, c *redis.SentinelClient) (a answer) {
	said, err := c.Master(ctx, f.name).Result()
	if err != nil {
		return answer{err: f.explain(err)}
	}
	a.view.Master = net.JoinHostPort(said["ip"], said["port"])
	a.view.RunID = said["runid"]
	a.view.Replicas, _ = strconv.Atoi(said["num-slaves"]) // 0 if the answer has no number
	a.view.Stable = said["flags"] == "master"
	a.epoch, _ = strconv.ParseInt(said["config-epoch"], 10, 64)
	return a
}

// explain returns, for a Sentinel that refuses to answer, an error that says what is wrong, and any other error
// unchanged.
func (f *Finder) explain(err error) error {
	says := func(begins ...string) bool {
		for _, b := range begins {
			if redis.HasErrorPrefix(err, b) {
				return true
			}
		}
		return false
	}
	switch {
	case says("No such master"):
		return fmt.Errorf("it knows no master %q", f.name)
	case says("NOAUTH"):
		return errors.New("this Sentinel needs a password, which isn't the one for Redis: add ?sentinel_password=…")
	case says("WRONGPASS", "invalid password", "AUTH "):
		return errors.New("this Sentinel doesn't accept sentinel_user and sentinel_password")
	case says("NOPERM"):
		return errors.New("this Sentinel doesn't let sentinel_user ask for the master")
	case says("unknown command"):
		return errors.New("this isn't a Sentinel")
	}
	return err
}
