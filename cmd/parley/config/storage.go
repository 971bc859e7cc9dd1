package config

import (
	"net/url"
	"strings"

	"parley/cmd/parley/config/schema"
)

// DataStorage says where data is stored, and for how long.
type DataStorage struct {
	Workspace Workspace
	Bus       Bus
	Store     Store
	Retention Retention
	Knowledge Knowledge
}

// Bus says where messages wait: in Redis at a URL, or in the home if there is none.
type Bus struct {
	URL    Secret // it may contain a password
	Prefix string
	Shards int // number of shards in Redis; see ShardCount
}

// clusterShards is the default number of shards of a bus on a Redis Cluster.
const clusterShards = 16

// ShardCount returns the number of shards of the bus: as set, or else a few for each node of a Redis Cluster, and one
// elsewhere.
func (b *Bus) ShardCount() int {
	switch {
	case b.Shards > 0:
		return b.Shards
	case isCluster(string(b.URL)):
		return clusterShards
	}
	return 1
}

func isCluster(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return strings.HasSuffix(scheme, "+cluster")
}

// busSection declares the settings of the bus.
func busSection() section {
	return section{
		Section: schema.Section{Name: "bus", Settings: []schema.Setting{
			{Key: "url", Kind: schema.URL, Schemes: []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}, Check: checkBusURL, Env: "REDIS_URL", Example: `"redis://127.0.0.1:6379"`, Fill: schema.Into(func(b *Bus) any { return &b.URL })},
			{Key: "prefix", Kind: schema.Text, Example: `"parley"`, Fill: schema.Into(func(b *Bus) any { return &b.Prefix })},
			{Key: "shards", Kind: schema.Count, Least: 1, Example: `16`, Fill: schema.Into(func(b *Bus) any { return &b.Shards })},
		}},
		check: checkBus,
	}
}

// checkBusURL refuses an address with several servers that can't be read, or doesn't say what its Sentinels call the
// master.
func checkBusURL(address string) *schema.Fault {
	scheme, rest, _ := strings.Cut(address, "://")
	switch {
	case isCluster(address):
		if _, err := url.Parse(address); err != nil {
			return &schema.Fault{Wrong: "its list of nodes can't be read", Remedy: `write "redis+cluster://HOST:PORT,HOST:PORT"`}
		}
	case strings.HasSuffix(scheme, "+sentinel"):
		rest, _, _ = strings.Cut(rest, "?")
		if _, name, _ := strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/"); strings.Trim(name, "/") == "" {
			return &schema.Fault{Wrong: "doesn't say what the Sentinels call the master", Remedy: `write "redis+sentinel://HOST:PORT,HOST:PORT/NAME"`}
		}
		if _, err := url.Parse(address); err != nil {
			return &schema.Fault{Wrong: "its list of Sentinels can't be read", Remedy: `write "redis+sentinel://HOST:PORT,HOST:PORT/NAME"`}
		}
	}
	return nil
}

// checkBus refuses a bus shared by several processes without a shared store: the workers would have the same messages
// but not the same logs. It also refuses shards of a bus that isn't in Redis.
func checkBus(l *loader) {
	if l.Mentioned("bus.shards") && !l.Mentioned("bus.url") {
		l.Report(l.At("bus.shards"), "bus.shards", "[bus] shards without [bus] url: only a bus in Redis has shards", "set [bus] url, or remove [bus] shards")
	}
	if !l.Mentioned("bus.url") || l.Mentioned("store.url") {
		return
	}
	l.Report(l.At("bus.url"), "bus.url", "[bus] url without [store] url: workers would share mail but not logs",
		"set [store] url or DATABASE_URL, or remove [bus] url")
}

// Store says where the logs of sessions are stored: in a database at a URL, or in the home if there is none.
type Store struct {
	URL Secret // it may contain a password
}

// storeSection declares the settings of the store.
func storeSection() section {
	return section{Section: schema.Section{Name: "store", Settings: []schema.Setting{
		{Key: "url", Kind: schema.URL, Schemes: []string{"postgres", "postgresql"}, Env: "DATABASE_URL", Example: `"postgres://127.0.0.1/parley"`, Fill: schema.Into(func(s *Store) any { return &s.URL })},
	}}}
}

// Retention says how long old data is kept: ended turns with what belongs to them, and dead letters.
type Retention struct {
	Days int // 0 means forever
}

// retentionSection declares the setting for how long old data is kept.
func retentionSection() section {
	return section{Section: schema.Section{Name: "retention", Settings: []schema.Setting{
		{Key: "days", Kind: schema.Count, Least: 1, Example: `30`, Fill: schema.Into(func(r *Retention) any { return &r.Days })},
	}}}
}

// Knowledge is a folder of the operator's documents that all agents can read.
type Knowledge struct {
	Dir string // "" means none
}

// knowledgeSection declares the setting of the operator's documents.
func knowledgeSection() section {
	return section{Section: schema.Section{Name: "knowledge", Settings: []schema.Setting{
		{Key: "dir", Kind: schema.Path, Example: `"knowledge"`, Fill: schema.Into(func(k *Knowledge) any { return &k.Dir })},
	}}}
}
