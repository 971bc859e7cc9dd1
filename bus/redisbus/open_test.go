package redisbus_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/bus/redisbus"
	"parley/bus/redisbus/redistest"
	redisserver "parley/bus/redisbus/server"
)

func TestServerFit(t *testing.T) {
	for _, x := range []struct {
		version, policy string
		remedy          string // empty if the server is suitable
	}{
		{"6.2.0", "noeviction", ""},
		{"7.0.15", "noeviction", ""},
		{"10.0", "noeviction", ""},
		{"6.0.16", "noeviction", "6.2 or newer"},
		{"5.9.9", "noeviction", "6.2 or newer"},
		{"", "noeviction", "6.2 or newer"},
		{"7.2.4", "allkeys-lru", "set maxmemory-policy to noeviction"},
		{"7.2.4", "volatile-ttl", "set maxmemory-policy to noeviction"},
		{"7.2.4", "", "set maxmemory-policy to noeviction"},
	} {
		err := redisserver.Info{Version: x.version, Policy: x.policy, Mode: "standalone"}.CheckFit()
		switch {
		case x.remedy == "" && err != nil:
			t.Errorf("%s %s: %v", x.version, x.policy, err)
		case x.remedy != "" && (!errors.Is(err, redisserver.ErrUnfit) || !strings.Contains(err.Error(), x.remedy)):
			t.Errorf("%s %s: %v, want ErrUnfit saying %q", x.version, x.policy, err, x.remedy)
		}
	}
}

func TestOpenRefusesEviction(t *testing.T) {
	t.Parallel()
	s := redistest.New(t, "--maxmemory-policy", "allkeys-lru")
	if _, err := redisbus.Open(t.Context(), redisbus.Config{URL: s.URL()}); !errors.Is(err, redisserver.ErrUnfit) {
		t.Errorf("open: %v, want ErrUnfit", err)
	}
	got, err := redisserver.Inspect(t.Context(), s.URL())
	if err != nil || got.Policy != "allkeys-lru" || !got.AOF || got.Version == "" {
		t.Errorf("inspect: %+v, %v", got, err)
	}
	if got.Skew < -time.Second || got.Skew > time.Second {
		t.Errorf("its clock is %v ahead of itself", got.Skew)
	}
}

func TestOpenWarnsWithoutAOF(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease, "--appendonly", "no")
	if !strings.Contains(r.log.String(), "append-only") {
		t.Errorf("logged %q", r.log)
	}
}

func TestOpenRefuses(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []redisbus.Config{
		{URL: "http://:" + secret + "@127.0.0.1:1"},
		{URL: "redis://:" + secret + "@127.0.0.1:1"},
		{URL: "redis://:" + secret + "@[::1"},
		{URL: "redis://127.0.0.1:1", Prefix: "a{b}"},
	} {
		_, err := redisbus.Open(t.Context(), c)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("open %s: %v, want an error without the password", c.URL, err)
		}
	}
}
