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
)

// askTimeout is how long a Sentinel may take to answer.
const askTimeout = time.Second

// A Finder asks Sentinels for the master. It believes the newest answer that most of them give: a
// Sentinel that is cut off from the others keeps naming the old master. go-redis would believe the
// first answer that it gets.
type Finder struct {
	name      string
	addresses []string
	clients   []*redis.SentinelClient // of the Sentinel with that address
	asking    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	newest int64 // the epoch of the view that was returned last
}

// NewFinder returns a Finder that reaches the Sentinels of an address. It uses the options for dialing,
// but not their user.
func NewFinder(a Address, o *redis.Options) *Finder {
	f := &Finder{name: a.Name, addresses: a.Sentinels}
	for _, address := range a.Sentinels {
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

// A View is what the Sentinels say about the group.
type View struct {
	Master   string // the master's address
	RunID    string // which process the master was when they last asked it
	Replicas int    // how many replicas they know, connected or not
	// Stable says that most Sentinels agree on the master, and that none of these considers it down or is
	// replacing it.
	Stable bool
	// Faults say why Sentinels that were asked gave no answer.
	Faults []string
	Asked  int // how many Sentinels there are

	epoch int64 // the number of the promotion that made it the master
}

// An answer is what one Sentinel says.
type answer struct {
	view View
	err  error
}

// View asks all Sentinels and returns what most of them say. If too few answer or they disagree, it
// returns the newest answer, unless that is older than the last View. The error contains the fault of
// each Sentinel.
func (f *Finder) View(ctx context.Context) (v View, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	agree, most := 0, len(f.clients)/2+1
	answers := f.askAll(ctx)
	for range f.clients {
		a := <-answers
		switch {
		case a.err != nil:
			v.Faults = append(v.Faults, a.err.Error())
		case agree == 0 || a.view.epoch > v.epoch:
			a.view.Faults = v.Faults
			v, agree = a.view, 1
		case a.view.epoch == v.epoch && a.view.Master == v.Master:
			v.Stable = v.Stable && a.view.Stable
			v.Replicas = max(v.Replicas, a.view.Replicas)
			agree++
		}
		if agree == most {
			break // the others need not be waited for
		}
	}
	v.Stable, v.Asked = v.Stable && agree == most, len(f.clients)
	f.mu.Lock()
	defer f.mu.Unlock()
	if agree == 0 || agree < most && v.epoch < f.newest {
		return View{}, fmt.Errorf("no Sentinel says where the master %q is: %s", f.name, strings.Join(v.Faults, "; "))
	}
	f.newest = v.epoch
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
			view, err := f.ask(ctx, c)
			if err != nil {
				err = fmt.Errorf("%s: %w", f.addresses[i], err)
			}
			answers <- answer{view, err}
		})
	}
	return answers
}

// ask asks one Sentinel.
func (f *Finder) ask(ctx context.Context, c *redis.SentinelClient) (v View, err error) {
	said, err := c.Master(ctx, f.name).Result()
	if err != nil {
		return v, f.explain(err)
	}
	v.Master = net.JoinHostPort(said["ip"], said["port"])
	v.RunID = said["runid"]
	v.Replicas, _ = strconv.Atoi(said["num-slaves"]) // 0 if it does not say
	v.epoch, _ = strconv.ParseInt(said["config-epoch"], 10, 64)
	v.Stable = said["flags"] == "master"
	return v, nil
}

// explain replaces the error of a Sentinel that refuses to answer by one that says what is wrong.
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
