package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/bus/redisbus"
	"parley/bus/redisbus/cluster"
	"parley/bus/redisbus/server"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// maxSkew is how much the clocks of a fleet's machines may differ.
const maxSkew = time.Second

// checkBus checks where messages wait: in Redis, or in the file in the home.
func checkBus(ctx context.Context, cfg *config.Config) []Finding {
	if cfg.Bus.URL == "" {
		return []Finding{checkLock(ctx, cfg)}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	place := "Redis at " + home.BusName(cfg)
	var found []Finding
	probed := map[string]bool{} // by the masters of a Cluster, because several shards may be on one master
	for _, tag := range cluster.Tags(cfg.Bus.ShardCount()) {
		began := time.Now()
		h, err := server.Probe(ctx, string(cfg.Bus.URL), tag)
		if err != nil {
			return append(found, Finding{Part: "bus", State: wrong, Detail: fmt.Sprintf("%s: %v", place, err),
				Remedy: "check whether it's running, and check the host, port and password in " + settingOf(cfg, "bus.url")})
		}
		master := ""
		if h.Group != nil {
			master = h.Group.Master
		}
		if !probed[master] {
			probed[master] = true
			found = append(append(found, describeRedis(place, h, time.Since(began))), judgeRedis(h)...)
		}
	}
	return append(found, checkShards(ctx, cfg)...)
}

// checkShards checks whether the bus in Redis has as many shards as configured.
func checkShards(ctx context.Context, cfg *config.Config) []Finding {
	n, err := redisbus.ReadShardCount(ctx, redisbus.Config{URL: string(cfg.Bus.URL), Prefix: cfg.Bus.Prefix})
	switch want := cfg.Bus.ShardCount(); {
	case err != nil:
		return []Finding{{Part: "bus", State: wrong, Detail: err.Error(), Remedy: "check Redis's log"}}
	case n > 0 && n != want:
		return []Finding{{Part: "bus", State: wrong, Detail: fmt.Sprintf("the bus in Redis has %d shards, but [bus] shards is %d", n, want),
			Remedy: fmt.Sprintf("set [bus] shards = %d; deploy/README.md says how to change the number", n)}}
	case want > 1:
		return []Finding{{Part: "bus", State: fine, Detail: fmt.Sprintf("split into %d shards", want)}}
	}
	return nil
}

// describeRedis returns the finding that a Redis server answers.
func describeRedis(place string, h server.Health, took time.Duration) Finding {
	ok := Finding{Part: "bus", State: fine, Detail: fmt.Sprintf("%s, version %s, answers in %d ms", place, h.Version, took.Milliseconds())}
	if h.Group != nil {
		ok.Detail += fmt.Sprintf(", the master is %s (replicas: %d)", h.Group.Master, h.Group.Online)
	}
	if h.Fsync != "" {
		ok.Detail += ", appendfsync " + h.Fsync
	}
	return ok
}

// judgeRedis returns findings about those settings of a Redis server that Parley depends on.
func judgeRedis(h server.Health) (found []Finding) {
	say := func(state, detail, remedy string) {
		found = append(found, Finding{Part: "bus", State: state, Detail: detail, Remedy: remedy})
	}
	switch {
	case h.Mode == "cluster" && !h.Clustered:
		say(wrong, "it's a node of a Redis Cluster", "write redis+cluster://HOST:PORT,HOST:PORT in [bus] url, with some of the nodes")
		return found
	case h.Mode == "standalone" && h.Clustered:
		say(wrong, "it isn't part of a Redis Cluster", "write redis://HOST:PORT in [bus] url")
		return found
	}
	version := h.Info
	version.Policy = "noeviction" // the policy is checked separately
	if version.CheckFit() != nil {
		say(wrong, textRedisVersion+h.Version, "use Redis 6.2 or newer")
	}
	if h.Policy != "noeviction" {
		say(wrong, "maxmemory-policy is "+h.Policy+": Redis throws mail away when memory runs short",
			"set maxmemory-policy noeviction in redis.conf; to apply it right away, run redis-cli CONFIG SET maxmemory-policy noeviction")
	}
	switch {
	case !h.AOF:
		say(wrong, textNoAppendOnly,
			"set appendonly yes in redis.conf; to apply it right away, run redis-cli CONFIG SET appendonly yes")
	case h.AOFFails:
		say(wrong, "the append-only file couldn't be written", "check Redis's log, and the room on its disk")
	case h.Fsync == "no":
		say(note, "appendfsync is no: a power outage may lose half a minute of mail", "set appendfsync everysec, or always")
	}
	if h.Replica {
		say(wrong, "it's a replica, which accepts no writes and may lag behind", "name the master in [bus] url")
	}
	if h.MaxMemory > 0 && h.UsedMemory > h.MaxMemory/10*8 {
		say(note, fmt.Sprintf("%d of %d MB are in use", h.UsedMemory>>20, h.MaxMemory>>20), "raise maxmemory before Redis is full: once it is, it accepts nothing more")
	}
	switch {
	case h.Group == nil:
	case h.Clustered:
		judgeNodes(*h.Group, say)
	default:
		judgeSentinels(*h.Group, say)
	}
	if h.Skew.Abs() >= maxSkew {
		say(wrong, skewText("Redis", h.Skew), "synchronize both clocks with NTP")
	}
	return found
}

// judgeSentinels reports what is wrong with the Sentinels and the replicas.
func judgeSentinels(g server.Group, say func(state, detail, remedy string)) {
	if len(g.Faults) > 0 {
		say(wrong, fmt.Sprintf("%d of %d Sentinels didn't answer: %s", len(g.Faults), g.Asked, strings.Join(g.Faults, "; ")), "check whether they're running, and check [bus] url")
	}
	if g.Asked < 3 {
		say(note, fmt.Sprintf("number of Sentinels that [bus] url names: %d", g.Asked), "name all of them: there should be 3, on different machines")
	}
	judgeReplicas(g, say)
}

// judgeNodes reports what is wrong with the nodes of a Cluster and the replicas of one of its masters.
func judgeNodes(g server.Group, say func(state, detail, remedy string)) {
	if len(g.Faults) > 0 {
		say(wrong, fmt.Sprintf("%d of %d nodes of the Cluster didn't answer: %s", len(g.Faults), g.Asked, strings.Join(g.Faults, "; ")), "check whether they're running; redis-cli CLUSTER FORGET removes one that won't come back")
	}
	judgeReplicas(g, say)
}

// judgeReplicas reports that a master has no replica.
func judgeReplicas(g server.Group, say func(state, detail, remedy string)) {
	if g.Online == 0 {
		say(note, "no replica is in touch with the master "+g.Master+": if the master is lost, so is its mail", "start a replica, or check the log of the one you have")
	}
}

// skewText returns in words how much the clock of the server who differs from this machine's.
func skewText(who string, skew time.Duration) string {
	return fmt.Sprintf("the clock of %s is %v %s this machine's", who, skew.Abs().Round(10*time.Millisecond),
		map[bool]string{true: "ahead of", false: "behind"}[skew > 0])
}

// settingOf returns a setting's key, and where its value can be changed if it is set.
func settingOf(cfg *config.Config, key string) string {
	if from := cfg.Origin(key); from != "" {
		return key + " (" + from + ")"
	}
	return key
}

// checkStore checks the database server that contains the sessions' logs and the channels' records, if one is
// configured.
func checkStore(ctx context.Context, cfg *config.Config) []Finding {
	if cfg.Store.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	h, err := sqldb.Probe(ctx, string(cfg.Store.URL))
	took := time.Since(began)
	place := "PostgreSQL at " + home.StoreName(string(cfg.Store.URL))
	if err != nil {
		return []Finding{{Part: "store", State: wrong, Detail: fmt.Sprintf("%s: %v", place, err),
			Remedy: "check whether it's running, and check the host, port, user and password in " + settingOf(cfg, "store.url")}}
	}
	ok := Finding{Part: "store", State: fine, Detail: fmt.Sprintf("%s, version %d, answers in %d ms, room for %d processes",
		place, h.Version/10_000, took.Milliseconds(), h.MaxConns/h.ConnsPerProcess)}
	if len(h.Versions) == 0 {
		ok.Detail += "; it's empty, and the first start creates its tables"
	}
	return append([]Finding{ok}, judgePostgres(h)...)
}

// judgePostgres returns findings about those settings of a PostgreSQL server that Parley depends on.
func judgePostgres(h sqldb.Health) (found []Finding) {
	say := func(state, detail, remedy string) {
		found = append(found, Finding{Part: "store", State: state, Detail: detail, Remedy: remedy})
	}
	if h.Version < 140_000 {
		say(wrong, fmt.Sprintf(textPostgresVersion, h.Version/10_000), "use PostgreSQL 14 or newer")
	}
	if h.ReadOnly {
		say(wrong, "it accepts no writes: it's a replica, or default_transaction_read_only is on", "name the primary in [store] url")
	}
	if missingTables(h) && !h.MayCreateTables {
		say(wrong, "its user isn't allowed to create tables, and some are still missing", "GRANT CREATE ON SCHEMA public to that user, or make it the owner of the database")
	}
	if h.Fsync == "off" || h.FullPageWrites == "off" {
		say(wrong, fmt.Sprintf("fsync is %s and full_page_writes is %s: if its machine crashes, all data may be ruined", h.Fsync, h.FullPageWrites),
			"set both to on in postgresql.conf, and reload it")
	}
	if h.SynchronousCommit == "off" {
		say(wrong, "synchronous_commit is off: a crash loses data that was already acknowledged", "remove synchronous_commit from [store] url")
	}
	switch {
	case h.MaxConns < h.ConnsPerProcess:
		say(wrong, fmt.Sprintf("it allows %d connections, and one process opens up to %d", h.MaxConns, h.ConnsPerProcess),
			"raise max_connections, or set a lower pool_max_conns in [store] url")
	case h.MaxConns < 3*h.ConnsPerProcess:
		say(note, fmt.Sprintf("it allows %d connections, and each process opens up to %d", h.MaxConns, h.ConnsPerProcess),
			"raise max_connections before you add processes, or set a lower pool_max_conns in [store] url")
	}
	for _, schema := range []sqldb.Schema{sqlstore.Schema(), sqlbook.Schema()} {
		has, knows, oldest := h.Versions[schema.Name], len(schema.Postgres), h.RequiredVersions[schema.Name]
		switch {
		case oldest > knows:
			say(wrong, fmt.Sprintf("the schema of the %s needs a release that knows version %d, but this one knows %d", schema.Name, oldest, knows), "use the newer release")
		case has > 0 && has < knows:
			say(note, fmt.Sprintf("the schema of the %s is version %d, and the next start updates it to %d", schema.Name, has, knows), "replace the processes of a fleet one by one: this release and the one before can share it")
		}
	}
	if h.ClockSkew.Abs() >= maxSkew {
		say(wrong, skewText("PostgreSQL", h.ClockSkew), "synchronize both clocks with NTP")
	}
	return found
}

// missingTables reports whether the database's schema is older than this release. The server's next start updates it.
func missingTables(h sqldb.Health) bool {
	return slices.ContainsFunc([]sqldb.Schema{sqlstore.Schema(), sqlbook.Schema()}, func(s sqldb.Schema) bool {
		return h.Versions[s.Name] < len(s.Postgres)
	})
}

// checkWorkspaces checks the directories in which sessions keep their files.
func checkWorkspaces(cfg *config.Config) (found []Finding) {
	for _, folder := range cfg.Folders() {
		found = append(found, checkWorkspace(cfg, folder))
	}
	if setting, ok := errors.AsType[*config.SettingError](home.CheckPlaces(cfg)); ok {
		found = append(found, Finding{Part: "workspace", State: wrong, Detail: "parley serve wouldn't start", Remedy: setting.Error()})
	}
	return found
}

func checkWorkspace(cfg *config.Config, folder config.Folder) Finding {
	root, part, setting := folder.Dir, "workspace", "[workspace] root"
	if folder.Agent != "" {
		part, setting = "workspace of "+folder.Agent, "[agents."+folder.Agent+"] workspace"
	}
	agents := cmp.Or(folder.Agent, "*") // matches the names of the directories in it
	f := Finding{Part: part, State: fine, Detail: root}
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		f.Detail += " (will be created)"
	} else if err := probeWrite(root); err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "it has to be a directory that this user may write to: check its owner, and check "+setting
		return f
	}
	if path, err := home.ForeignDir(root, agents, agents+"/*"); err != nil || path != "" {
		f.State, f.Detail, f.Remedy = wrong, "this user can't use "+path, fmt.Sprintf("give it to the user that parley serve runs as: run chown -R %d %s", os.Geteuid(), root)
		if err != nil {
			f.Detail = err.Error()
		}
		return f
	}
	if cfg.Store.URL == "" {
		return f
	}
	raw, err := os.ReadFile(filepath.Join(root, home.MarkerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "let this user read it"
		return f
	}
	name := home.StoreName(string(cfg.Store.URL))
	if found := strings.TrimSpace(string(raw)); found != "" && found != name {
		f.State = wrong
		f.Detail = fmt.Sprintf("%s belongs to the store %s, and the configuration names %s", root, found, name)
		f.Remedy = "give every process of a fleet the same shared root, and each store its own; if the store was moved, delete " + filepath.Join(root, home.MarkerFile)
		return f
	}
	if home.IsOwnFolder(cfg, root) {
		f.State = note
		f.Detail = root + " is in the home, which processes on other machines don't have"
		f.Remedy = "if processes run on several machines, set " + setting + " to a directory that all of them share: workers work in it, and gateways read the files that agents send"
	}
	return f
}

// probeWrite returns an error unless files can be created in a directory, and removed.
func probeWrite(dir string) error {
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// checkData checks that the bot's data is where the configuration says it is, in the home or on servers. It returns no
// finding if it is.
func checkData(cfg *config.Config) []Finding {
	var setting *config.SettingError
	switch err := home.CheckData(cfg); {
	case err == nil:
		return nil
	case errors.As(err, &setting):
		return []Finding{{Part: "data", State: wrong, Detail: "parley serve wouldn't start", Remedy: setting.Error()}}
	default:
		return []Finding{{Part: "data", State: wrong, Detail: err.Error(), Remedy: "check the home's files"}}
	}
}
