package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"parley/bus/redisbus/cluster"
)

// Slot returns the same slot of a tag as every client of a Cluster.
func TestSlot(t *testing.T) {
	for tag, want := range map[string]int{"123456789": 12739, "foo": 12182, "0": 13907, "": 0} {
		if got := cluster.Slot(tag); got != want {
			t.Errorf("slot of %q is %d, want %d", tag, got, want)
		}
	}
}

// Tags returns one tag in each of n equal ranges of slots, and the first is the tag of a bus without shards.
func TestTags(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16, 100, 256} {
		tags := cluster.Tags(n)
		if len(tags) != n || tags[0] != "0" {
			t.Fatalf("%d tags are %q", n, tags)
		}
		ranges := map[int]bool{}
		for _, tag := range tags {
			ranges[cluster.Slot(tag)*n/16384] = true
		}
		if len(ranges) != n {
			t.Errorf("%d tags are in %d ranges", n, len(ranges))
		}
	}
}

func TestParse(t *testing.T) {
	a, err := cluster.Parse("rediss+cluster://u:p@a,b:1?copies=2&tls_name=n")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Hosts, []string{"a:6379", "b:1"}) || a.Copies != 2 || a.ServerName != "n" || a.Redis() != "rediss://u:p@a:6379" {
		t.Errorf("parsed %+v, %s", a, a.Redis())
	}
	for address, says := range map[string]string{
		"redis+cluster://:hunter2@a:1/2":        "only one database",
		"redis+cluster://:hunter2@a:1?db=2":     "only one database",
		"redis+cluster://:hunter2@":             "HOST:PORT",
		"redis+cluster://:hunter2@a?copies=one": "copies",
	} {
		if _, err := cluster.Parse(address); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", address, err, says)
		}
	}
}
