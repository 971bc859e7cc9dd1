package snapshots

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/tools/plainjson"
)

// A Record lists what one turn, or one undo, has changed.
type Record struct {
	N      int       `json:"n"` // its number in the session, from 1
	Turn   string    `json:"turn"`
	Person string    `json:"person,omitempty"` // who asked for the turn or undo
	At     time.Time `json:"at"`
	// UndoneRecord is the number of the record that this one undid; 0 for a turn.
	UndoneRecord int      `json:"undoes,omitempty"`
	Changes      []Change `json:"changes,omitempty"` // sorted by path
	// OpenTree is the name of the tree at the turn's beginning, as long as the turn may still change files;
	// "" once it has ended.
	OpenTree string `json:"open,omitempty"`
	// Problem says why it is not known what the turn has changed.
	Problem string `json:"problem,omitempty"`
	// Note is data that the caller of Begin stores with the record.
	Note json.RawMessage `json:"note,omitempty"`
	// Result is the result of an undo that is over.
	Result *Result `json:"result,omitempty"`
}

// A TurnInfo describes the turn for which Begin makes a record.
type TurnInfo struct {
	Turn   string
	Person string
	Note   json.RawMessage // data to store with the first record of the turn
}

const (
	turnPrefix = "turn-"
	treePrefix = "tree-"
	latestName = "latest"
)

// name returns the name of the record's file.
func (r *Record) name() string {
	return fmt.Sprintf("%s%09d-%s", turnPrefix, r.N, hashName(r.Turn)[:16])
}

// Begin records the state of a workspace before a turn changes anything. It does nothing if that has been done, or
// if no turns are kept. If the workspace has too many files, the record says that instead.
func (s *Store) Begin(ctx context.Context, p Place, a TurnInfo) error {
	if s.cfg.MaxTurns <= 0 {
		return nil
	}
	d, leave, err := s.openHistory(p)
	if err == nil {
		defer leave()
		_, err = d.begin(ctx, a, 0)
	}
	if err != nil {
		return fmt.Errorf("note what a turn finds: %w", err)
	}
	return nil
}

func (d *history) begin(ctx context.Context, a TurnInfo, undoes int) (Record, error) {
	if err := d.makeFolder(); err != nil {
		return Record{}, err
	}
	if known, err := d.recordOf(a.Turn); known.OpenTree != "" || known.Problem != "" || err != nil {
		return known, err // any call of the turn but the first
	}
	records, err := d.records()
	if err != nil {
		return Record{}, err
	}
	r := Record{N: 1, Turn: a.Turn, Person: a.Person, At: time.Now().UTC(), UndoneRecord: undoes, Note: a.Note}
	if len(records) > 0 {
		r.N = records[len(records)-1].N + 1
	}
	put := d.create
	for _, known := range records {
		if known.Turn == a.Turn {
			r, put = known, d.write
		}
	}
	now, err := d.walk(ctx, d.latest(), true)
	d.cfg.Point("undo:walked")
	switch {
	case errors.Is(err, ErrTooMany):
		r.Problem = err.Error()
	case err != nil:
		return Record{}, err
	default:
		if err := d.closeOthers(records, a.Turn, now); err != nil {
			return Record{}, err
		}
		if r.OpenTree, err = d.keepTree(now); err == nil {
			err = d.sync(r.OpenTree)
		}
		if err != nil {
			return Record{}, err
		}
	}
	if err := d.save(&r, put); err != nil {
		return Record{}, err
	}
	return r, d.prune(append(records, r))
}

// closeOthers ends the records of all turns except the given one. They were interrupted before their end
// was recorded: everything that has changed until now counts as theirs.
func (d *history) closeOthers(records []Record, turn string, now *tree) error {
	for _, r := range records {
		if r.OpenTree == "" || r.Turn == turn {
			continue
		}
		if err := d.end(&r, now); err != nil {
			return err
		}
	}
	return nil
}

// End records what a turn has changed, when the turn changes nothing more for now.
func (s *Store) End(ctx context.Context, p Place, turn string) error {
	d, leave, err := s.openHistory(p)
	if err == nil {
		defer leave()
		err = d.endTurn(ctx, turn)
	}
	if err != nil {
		return fmt.Errorf("note what a turn has changed: %w", err)
	}
	return nil
}

func (d *history) endTurn(ctx context.Context, turn string) error {
	r, err := d.recordOf(turn)
	if err != nil || r.OpenTree == "" {
		return err
	}
	now, err := d.walk(ctx, d.tree(r.OpenTree), false)
	if err != nil && !errors.Is(err, ErrTooMany) {
		return err
	}
	return d.end(&r, now)
}

// recordOf returns the record of a turn; the zero Record if there is none that can be read.
func (d *history) recordOf(turn string) (r Record, err error) {
	names, err := d.names()
	if err != nil {
		return Record{}, err
	}
	suffix := "-" + hashName(turn)[:16]
	for _, name := range slices.Backward(names) {
		if !strings.HasPrefix(name, turnPrefix) || !strings.HasSuffix(name, suffix) {
			continue
		}
		if d.readJSON(name, &r) != nil {
			return Record{}, nil
		}
		return r, nil
	}
	return Record{}, nil
}

// end writes the record of what a turn has changed; now is the tree at its end, or nil if that is
// unknown. A turn that has changed nothing leaves no record.
func (d *history) end(r *Record, now *tree) error {
	was := d.tree(r.OpenTree)
	if now == nil || was == nil {
		r.Problem = ErrTooMany.Error()
		if was == nil {
			r.Problem = "I no longer know what was there before"
		}
	} else {
		r.Changes = mergeChanges(r.Changes, difference(was, now))
		if _, err := d.keepTree(now); err != nil {
			return err
		}
	}
	r.OpenTree = ""
	if len(r.Changes) == 0 && r.Problem == "" && r.UndoneRecord == 0 {
		return d.removeIfThere(r.name())
	}
	return d.save(r, d.write)
}

// difference returns the changes from one tree to another, sorted by path.
func difference(was, now *tree) []Change {
	var all []Change
	for name, from := range was.Entries {
		to, ok := now.Entries[name]
		if !ok {
			all = append(all, Change{Path: name, From: &from})
		} else if !sameEntry(&from, &to) {
			all = append(all, Change{Path: name, From: &from, To: &to})
		}
	}
	for name, to := range now.Entries {
		if _, ok := was.Entries[name]; !ok {
			all = append(all, Change{Path: name, To: &to})
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return all
}

// mergeChanges joins the changes of a turn's parts, between which it may have waited, into one list.
func mergeChanges(before, after []Change) []Change {
	if len(before) == 0 {
		return after
	}
	all := map[Name]Change{}
	for _, c := range before {
		all[c.Path] = c
	}
	for _, c := range after {
		if earlier, ok := all[c.Path]; ok {
			c.ChangedByOthers = earlier.ChangedByOthers || !sameEntry(earlier.To, c.From)
			c.From = earlier.From
		}
		if all[c.Path] = c; !c.ChangedByOthers && sameEntry(c.From, c.To) {
			delete(all, c.Path)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Change) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

func (d *history) save(r *Record, put func(name string, content []byte) error) error {
	raw, err := plainjson.Marshal(r)
	if err != nil {
		return err
	}
	return put(r.name(), raw)
}

// records reads all records of the history, the oldest first.
func (d *history) records() ([]Record, error) {
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, name := range names {
		if !strings.HasPrefix(name, turnPrefix) {
			continue
		}
		var r Record
		err := d.readJSON(name, &r)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil { // a power failure left the record incomplete, but its number is still taken
			number, _, _ := strings.Cut(strings.TrimPrefix(name, turnPrefix), "-")
			r = Record{Problem: "I can't read my record of it", Turn: name}
			if r.N, err = strconv.Atoi(number); err != nil {
				continue
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// recent returns the records that are not older than Config.MaxAge.
func (d *history) recent(all []Record) []Record {
	return slices.DeleteFunc(all, func(r Record) bool { return d.isOld(r) })
}

func (d *history) isOld(r Record) bool { return d.cfg.MaxAge > 0 && time.Since(r.At) > d.cfg.MaxAge }

// A latestTree is the content of the file that names the newest tree.
type latestTree struct {
	Tree string `json:"tree"`
}

// latest returns the newest tree; nil if there is none. With it, files that nobody has touched need not
// be read again.
func (d *history) latest() *tree {
	var l latestTree
	if d.readJSON(latestName, &l) != nil {
		return nil
	}
	return d.tree(l.Tree)
}

// tree reads a tree; it returns nil if there is none with that name.
func (d *history) tree(name string) *tree {
	if !strings.HasPrefix(name, treePrefix) || d.dir == nil {
		return nil
	}
	if _, err := d.dir.Lstat(name); err != nil {
		return nil
	}
	if t := d.cache.find(d.place.folder() + name); t != nil {
		return t
	}
	var t tree
	if d.readJSON(name, &t) != nil {
		return nil
	}
	d.cache.add(d.place.folder()+name, &t)
	return &t
}

// keepTree writes a tree, records it as the newest, and returns its name. It does not wait for the disk:
// until a turn's record names the tree, the tree only saves work.
func (d *history) keepTree(t *tree) (string, error) {
	var l latestTree
	if d.readJSON(latestName, &l) == nil {
		if last := d.tree(l.Tree); last != nil && last.covers(t) {
			return l.Tree, nil
		}
	}
	raw, err := plainjson.Marshal(t)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	name := treePrefix + hex.EncodeToString(sum[:16])
	if _, err := d.dir.Lstat(name); err != nil {
		if err := d.putFile(name, raw, false, d.dir.Rename); err != nil {
			return "", err
		}
	}
	d.cache.add(d.place.folder()+name, t)
	raw, err = plainjson.Marshal(latestTree{name})
	if err != nil {
		return "", err
	}
	return name, d.putFile(latestName, raw, false, d.dir.Rename)
}

// sync waits until the file of the tree with that name is on the disk: a record that names a tree must
// not outlive it.
func (d *history) sync(name string) error {
	f, err := d.dir.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Records lists the records of a place that are not older than Config.MaxAge, the oldest first.
func (s *Store) Records(p Place) ([]Record, error) {
	d, leave, err := s.openHistory(p)
	if err != nil {
		return nil, fmt.Errorf("list what turns have changed: %w", err)
	}
	defer leave()
	all, err := d.records()
	if err != nil {
		return nil, fmt.Errorf("list what turns have changed: %w", err)
	}
	return d.recent(all), nil
}

// ChangesSoFar returns what a running turn has changed so far.
func (s *Store) ChangesSoFar(ctx context.Context, p Place, r Record) ([]Change, error) {
	d, leave, err := s.openHistory(p)
	if err != nil {
		return nil, fmt.Errorf("look what a turn has changed: %w", err)
	}
	defer leave()
	was := d.tree(r.OpenTree)
	if was == nil {
		return r.Changes, nil
	}
	now, err := d.walkReadable(ctx, was)
	if err != nil {
		return nil, fmt.Errorf("look what a turn has changed: %w", err)
	}
	return mergeChanges(r.Changes, difference(was, now)), nil
}

// IsUndone reports whether the changes of record n were undone, given all records.
func IsUndone(all []Record, n int) bool {
	for _, r := range slices.Backward(all) {
		if r.UndoneRecord == n && r.Result != nil && !IsUndone(all, r.N) {
			return true
		}
	}
	return false
}
