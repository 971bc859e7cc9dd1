package redisbus

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"parley/bus"
)

// keys builds the names of all keys and channels that a bus uses in Redis. All names contain the same
// hash tag, which puts all keys on one node of a Cluster.
type keys struct {
	prefix   string
	channels string // the beginning of each channel's name
}

// newKeys returns the names for a bus with that prefix in that database of the server. Channels, unlike keys, belong
// to the whole server, so their names contain the database.
func newKeys(prefix, tag string, database int) keys {
	k := keys{prefix: prefix + ":{" + tag + "}:"}
	k.channels = k.prefix
	if database != 0 {
		k.channels += "db" + strconv.Itoa(database) + ":"
	}
	return k
}

func (k keys) clock() string    { return k.prefix + "clock" }      // the highest number given out
func (k keys) contact() string  { return k.prefix + "contact" }    // when the fleet last reached Redis, and until when leases are spared
func (k keys) topics() string   { return k.prefix + "topics" }     // sorted set of topics, by when they were last in use
func (k keys) released() string { return k.channels + "released" } // channel: names that have become free, for the release before

func (k keys) shards() string    { return k.prefix + "shards" }      // number of shards of the bus; in the first of them
func (k keys) forgotten() string { return k.channels + "forgotten" } // channel: requests to forget the events of sessions

// workingLeases and begunIDs name the keys under which a group's leases and begun ids are counted (see
// bus.CountedLease), and countedLeases the one for leases of all shards. The names contain a hash of the group, which may be a person's id.
func (k keys) workingLeases(group string) string { return k.prefix + "working:" + shortHash(group) }
func (k keys) countedLeases(group string) string { return k.prefix + "counted:" + shortHash(group) }
func (k keys) begunIDs(group string) string      { return k.prefix + "begun:" + shortHash(group) }

func (k keys) hold(name string) string             { return k.prefix + "hold:" + name }        // the fence under which the name is held
func (k keys) waitingProcesses(name string) string { return k.prefix + "waiting:" + name }     // set of the processes that wait for the name
func (k keys) notes(instance string) string        { return k.channels + "notes:" + instance } // channel: notes for a process
func (k keys) nudge(instance string) string        { return k.prefix + "nudge:" + instance }   // list: a token in it ends a process's blocking call
func (k keys) channel(feed bus.Feed) string        { return k.channels + "feed:" + string(feed) }
func (k keys) stream(feed bus.Feed) string         { return k.prefix + "events:" + string(feed) }
func (k keys) topic(name bus.Topic) topicKeys      { return newTopicKeys(k, name) }

// topicKeys contains the names of everything that a bus stores for one topic.
type topicKeys struct {
	name     bus.Topic
	keyPart  string // the topic's name as part of a key
	prefix   string
	channels string // the beginning of each channel's name

	// scripts/shared/box.lua describes the first four.
	state, heads, due, leased string
	wake                      string // list of at most one token, which wakes one process that waits
	pause                     string // exists while nothing may be claimed
	dead                      string // hash of dead letters by id
	graves                    string // sorted set of the ids of dead letters, in the order of burial
}

func newTopicKeys(k keys, name bus.Topic) topicKeys {
	part := strings.NewReplacer("%", "%25", ":", "%3A").Replace(string(name))
	return topicKeys{
		name: name, keyPart: part, prefix: k.prefix, channels: k.channels,
		state:  k.prefix + "state:" + part,
		heads:  k.prefix + "heads:" + part,
		due:    k.prefix + "due:" + part,
		leased: k.prefix + "leased:" + part,
		wake:   k.prefix + "wake:" + part,
		pause:  k.prefix + "pause:" + part,
		dead:   k.prefix + "dead:" + part,
		graves: k.prefix + "graves:" + part,
	}
}

// mail returns the name of the list with the messages of a mailbox, except the first.
func (t *topicKeys) mail(key string) string { return t.prefix + "mail:" + t.keyPart + ":" + key }

// seenSetCount is the number of sets over which the ids of a day's messages are spread. Redis
// blocks while it enlarges the table of a set, which takes long for a large set.
const seenSetCount = 256

// rememberLast is how long Redis remembers which process had a session's mailbox last. A process keeps a
// session in memory for about as long.
const rememberLast = 10 * time.Minute

// remembersLast reports whether it matters which process claims a mailbox: one that had it lately need not read the
// session again. For other topics it does not matter, or one process claims all of their mail anyway.
func (t *topicKeys) remembersLast() bool { return t.name == bus.InboundTopic }

// lastHolder returns the name of the key that holds which process had a mailbox last. It is not deleted with the session, so
// it contains only a hash of the mailbox's key. If two mailboxes have the same, one is offered to a process in vain.
func (t *topicKeys) lastHolder(key string) string {
	return t.prefix + "last:" + t.keyPart + ":" + shortHash(key)[:16]
}

// claimers returns the name of the channel to which the processes listen that claim the topic's mail; "" if nobody needs
// to know how many there are.
func (t *topicKeys) claimers() string {
	if !t.remembersLast() {
		return ""
	}
	return t.channels + "claimers:" + t.keyPart
}

// seenIDs returns the name of the set that contains id if a message with that id was published on that
// day, counted from 1970 in UTC.
func (t *topicKeys) seenIDs(day int64, id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // Write never fails
	return t.seenSet(day, int(h.Sum32()%seenSetCount))
}

// seenSet returns the name of one of the sets over which the ids of a day are spread.
func (t *topicKeys) seenSet(day int64, i int) string {
	return t.prefix + "seen:" + t.keyPart + ":" + strconv.FormatInt(day, 10) + ":" + strconv.Itoa(i)
}

func shortHash(group string) string {
	sum := sha256.Sum256([]byte(group))
	return hex.EncodeToString(sum[:16])
}
