package search

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/sessions"
	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
)

const (
	// maxEmbeddedBytes is how many bytes of a text its vector is made from: about as much as every model
	// reads.
	maxEmbeddedBytes = 1500
	// textsPerRequest is the most texts in one request.
	textsPerRequest = 64
	// embedTimeout limits a request for texts, and queryTimeout one for a query, for which somebody waits.
	embedTimeout = time.Minute
	queryTimeout = 2 * time.Second
	// retryPause is how long no queries are sent to a provider after it has failed.
	retryPause = 30 * time.Second
	// maxNearest is how many entries found by meaning are compared with those that contain the query's
	// words.
	maxNearest = 30
	// rebuildInterval is the shortest time after which vectors are made again for the same model. Without it,
	// two processes with different settings would do so forever, and pay for it each time.
	rebuildInterval = time.Hour
	// minEmbeddedBytes is how much of a text is sent at least when the provider refuses more of it, in bytes.
	minEmbeddedBytes = 100
	// maxRefusals is how many requests in a row must be refused before a single text is given up.
	maxRefusals = 3
	// probeText is a text that every model takes.
	probeText = "hello"
)

// Errors of filling.
var (
	errUnusableVectors = errors.New("the provider did not return one usable vector for each text, all of the same length")
	errOtherProcess    = errors.New("another process is creating the vectors now")
	errRebuiltRecently = errors.New("the vectors were recreated less than an hour ago: does another process have different [embeddings], or does the provider return vectors of varying length?")
)

// MeaningsConfig contains what Meanings need.
type MeaningsConfig struct {
	Table *Table
	// Embedding returns the embedding that is configured now; the zero Embedding if there is none.
	Embedding func() Embedding
	// RemoveSecrets removes secrets from a text before it is sent.
	RemoveSecrets func(text string) string
	// MayAsk, if set, reports whether a budget has room for a request to the provider. Without room, or if it is not
	// known whether there is any, the vectors wait, and searches find by words alone.
	MayAsk func(ctx context.Context) (bool, error)
	Log    *slog.Logger
}

// Meanings find entries by their words and, if an embedding is configured, also by what they mean. In the
// background, they make the vectors for this from the entries in the index of words.
type Meanings struct {
	cfg     MeaningsConfig
	vectors vectors.Store

	filling         filling
	maxTexts        int                            // how many texts the next request contains
	refusedRequests int                            // how many requests in a row the provider has refused
	vectorsBegun    map[vectors.Identity]time.Time // when the vectors of each identity were begun
	textOutage      outage                         // the outage of requests for texts
	budgetOutage    outage                         // the time in which a cap of the budget is reached
	queryOutage     outage                         // the outage of requests for queries
}

// NewMeanings makes Meanings over an index.
func NewMeanings(c MeaningsConfig) *Meanings {
	return &Meanings{cfg: c, vectors: vectors.Store{DB: c.Table.db}, maxTexts: textsPerRequest, vectorsBegun: map[vectors.Identity]time.Time{}}
}

// SessionsSpokenIn lists sessions in which one of the people has said something; see [Index].
func (m *Meanings) SessionsSpokenIn(ctx context.Context, agent string, people []string, limit int) ([]string, error) {
	return m.cfg.Table.SessionsSpokenIn(ctx, agent, people, limit)
}

// Search finds entries; see [Index]. Only the words count if no embedding is configured, if no budget has
// room, or if it cannot find out in time what the query means.
func (m *Meanings) Search(ctx context.Context, q Query) ([]Hit, error) {
	e := m.cfg.Embedding()
	if e.Model == "" || m.queryOutage.isRecent() {
		return m.cfg.Table.Search(ctx, q)
	}
	if may, err := m.mayAsk(ctx); err != nil || !may {
		return m.cfg.Table.Search(ctx, q)
	}
	asking, cancel := context.WithTimeout(ctx, queryTimeout)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer cancel()
	var vector vectors.Packed
	var failed error
	asked.Go(func() {
		var got []vectors.Packed
		if got, failed = m.embedOne(asking, e, promptsOf(e.Model).query+truncate(m.withoutSecrets(q.Words), maxEmbeddedBytes), isTooLong); failed == nil {
			vector = got[0]
		}
	})
	return m.cfg.Table.search(ctx, q, func(ctx context.Context, in []vectors.Scope) ([]vectors.Near, float64, error) {
		asked.Wait()
		if failed != nil {
			m.recordNoAnswer(ctx, failed)
			return nil, 0, nil
		}
		m.queryOutage.end()
		near := vectors.Query{Vector: vector, Identity: identityOf(e, vector), Scopes: in, Limit: maxNearest}
		if !q.Since.IsZero() {
			near.Since = timeOf(q.Since)
		}
		if !q.Until.IsZero() {
			near.Until = timeOf(q.Until)
		}
		return m.vectors.Near(ctx, near)
	})
}

// recordNoAnswer records that the provider did not say what a query means, and logs the first such failure in a row.
func (m *Meanings) recordNoAnswer(ctx context.Context, err error) {
	if ctx.Err() == nil && m.queryOutage.begin() {
		m.cfg.Log.Warn("the provider of [embeddings] does not say in time what a search means; it finds by words alone", slog.Any("error", err))
	}
}

// Run makes vectors until ctx is done. It tells the operator once while the provider fails.
func (m *Meanings) Run(ctx context.Context) error {
	for failures := 0; ; {
		began := time.Now()
		more, err := m.Fill(ctx)
		pause := FillInterval
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			pause = min(time.Second<<min(failures, 10), 10*time.Minute)
			if failures++; m.textOutage.begin() {
				m.cfg.Log.Error("vectors of what was said cannot be made; recall finds by words alone what has none, and I try again", slog.Any("error", err))
			}
		default:
			if failures = 0; m.textOutage.end() {
				m.cfg.Log.Info("vectors of what was said can be made again")
			}
			if more {
				pause = max(100*time.Millisecond, time.Since(began))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Fill makes some of the missing vectors, with one request, and reports whether there may be more. It
// continues where the last call of any process ended. If the existing vectors are from another model, it
// replaces all of them. It does nothing if no embedding is configured, if no budget has room, or while another
// process makes vectors.
func (m *Meanings) Fill(ctx context.Context) (more bool, err error) {
	m.filling.mu.Lock()
	defer m.filling.mu.Unlock()
	e := m.cfg.Embedding()
	if e.Model == "" {
		return false, nil
	}
	if may, err := m.mayFill(ctx); err != nil || !may {
		return false, err
	}
	of, err := m.vectors.Identity(ctx)
	if err != nil {
		return false, fmt.Errorf("look for vectors: %w", err)
	}
	if of.Model != e.Model || of.Prompt != promptsOf(e.Model).name {
		err := m.runAlone(ctx, func(h vectors.Hold) error { return m.replaceVectors(ctx, e, h) })
		return err == nil, ignoreTaken(err)
	}
	if time.Since(m.filling.scanStarted) > fullScanInterval/12 { // words of old entries may be indexed by now
		m.filling.scanStarted = time.Time{}
	}
	more, err = m.cfg.Table.eachIncomplete(ctx, &m.filling, "embedded < indexed", func(ctx context.Context, list []pendingSession) (done int, left bool, err error) {
		if len(list) == 0 {
			return 0, false, nil
		}
		err = m.runAlone(ctx, func(h vectors.Hold) error {
			done, err = m.fill(ctx, e, h, of, list)
			return err
		})
		return done, done > 0, err // what a conversation gains meanwhile is indexed only once in FillInterval
	})
	if err != nil {
		return false, ignoreTaken(err)
	}
	return more, nil
}

// mayAsk reports whether a budget has room for a request.
func (m *Meanings) mayAsk(ctx context.Context) (bool, error) {
	if m.cfg.MayAsk == nil {
		return true, nil
	}
	return m.cfg.MayAsk(ctx)
}

// mayFill reports whether a budget has room for requests for texts, and tells the operator when that changes.
func (m *Meanings) mayFill(ctx context.Context) (bool, error) {
	may, err := m.mayAsk(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("look whether a budget has room for vectors: %w", err)
	case !may && m.budgetOutage.begin():
		m.cfg.Log.Warn("a cap of [budget] is reached; the vectors of what was said wait, and recall finds by words alone")
	case may && m.budgetOutage.end():
		m.cfg.Log.Info("there is budget again for vectors of what was said")
	}
	return may, nil
}

// ignoreTaken returns err, or nil if err only says that another process makes the vectors.
func ignoreTaken(err error) error {
	if err == nil || errors.Is(err, errOtherProcess) || errors.Is(err, vectors.ErrOvertaken) || errors.Is(err, vectors.ErrOtherIdentity) {
		return nil
	}
	return fmt.Errorf("make vectors: %w", err)
}

// runAlone calls do while no other process makes vectors, because each would pay for the same ones. If this process
// pauses for so long that its hold ends, and another process makes them, this one can change nothing anymore. It
// returns errOtherProcess if another process makes vectors now.
func (m *Meanings) runAlone(ctx context.Context, do func(vectors.Hold) error) (err error) {
	h, taken, err := m.vectors.Take(ctx, 2*embedTimeout)
	if err != nil {
		return err
	}
	if !taken {
		return errOtherProcess
	}
	defer func() { err = errors.Join(err, m.vectors.Leave(context.WithoutCancel(ctx), h)) }()
	return do(h)
}

// replaceVectors replaces all vectors with those of another model. It first asks the model how long its
// vectors are, so that nothing is removed while the provider is unreachable. It returns errRebuiltRecently if this
// process has done so for the same model less than rebuildInterval ago.
func (m *Meanings) replaceVectors(ctx context.Context, e Embedding, h vectors.Hold) error {
	got, err := m.embed(ctx, e, []string{probeText})
	if err != nil {
		return fmt.Errorf("ask for a vector: %w", err)
	}
	of := identityOf(e, got[0])
	now, err := m.vectors.Identity(ctx)
	if err != nil || now == of { // another process has done it
		return err
	}
	if time.Since(m.vectorsBegun[of]) < rebuildInterval {
		return errRebuiltRecently
	}
	m.cfg.Log.Info("the vectors of what was said are made anew", slog.String("model", of.Model), slog.Int("dimensions", of.Dimensions))
	if err := m.vectors.Begin(ctx, h, of); err != nil {
		return fmt.Errorf("begin vectors anew: %w", err)
	}
	m.vectorsBegun[of], m.filling.scanStarted = time.Now(), time.Time{}
	return nil
}

// fill makes vectors for some entries of sessions with one request, and returns for how many sessions.
func (m *Meanings) fill(ctx context.Context, e Embedding, h vectors.Hold, of vectors.Identity, list []pendingSession) (done int, err error) {
	if list, err = m.read(ctx, list); err != nil {
		return 0, err
	}
	var all []string
	for _, p := range list {
		for _, t := range p.texts {
			all = append(all, promptsOf(e.Model).text+truncate(m.withoutSecrets(t.content), maxEmbeddedBytes))
		}
	}
	got, err := m.embedOrSkip(ctx, e, all)
	if err != nil || got == nil {
		return len(list), err
	}
	for i := range list {
		for _, t := range list[i].texts {
			if v := got[0]; v != nil && len(v) != of.Dimensions { // the provider now has another model with this name
				return len(list), m.replaceVectors(ctx, e, h)
			} else if v != nil {
				list[i].vectors = append(list[i].vectors, vectors.Row{N: t.n, Vector: v})
			}
			got = got[1:]
		}
	}
	list, err = m.cfg.Table.write(ctx, list, func(tx *sqldb.Tx, p *pendingSession) (bool, error) { return m.put(tx, h, of, p) })
	return len(list), err
}

// embedOrSkip returns the vectors of texts. If the provider accepts other texts but not these, it returns nil, and
// the next request contains half as many. It shortens a single text that may be too long; if the provider has refused
// several requests in a row nevertheless, the text's vector is nil.
func (m *Meanings) embedOrSkip(ctx context.Context, e Embedding, texts []string) ([]vectors.Packed, error) {
	if len(texts) == 0 {
		return []vectors.Packed{}, nil
	}
	got, err := m.embed(ctx, e, texts)
	if err == nil {
		m.maxTexts, m.refusedRequests = min(2*m.maxTexts, textsPerRequest), 0
		return got, nil
	}
	if _, away := m.embed(ctx, e, []string{probeText}); away != nil {
		return nil, err
	}
	m.refusedRequests++
	if len(texts) > 1 {
		m.maxTexts = max(1, len(texts)/2)
		return nil, nil
	}
	shorten := isTooLong
	if m.refusedRequests >= maxRefusals { // some servers do not say that it is too long
		shorten = func(error) bool { return true }
	}
	if half := len(texts[0]) / 2; half >= minEmbeddedBytes && shorten(err) {
		if got, err = m.embedOne(ctx, e, truncate(texts[0], half), shorten); err == nil {
			m.refusedRequests = 0
			return got, nil
		}
	}
	if _, away := m.embed(ctx, e, []string{probeText}); away != nil {
		return nil, err
	}
	if m.refusedRequests >= maxRefusals {
		m.refusedRequests = 0
		m.cfg.Log.Warn("the provider of [embeddings] does not take the text of an entry, nor its beginning: it is found by its words alone", slog.Any("error", err))
		return make([]vectors.Packed, 1), nil
	}
	return nil, nil
}

// embedOne asks for the vector of a text. As long as the provider refuses the text with an error that shorten accepts,
// it asks again with half of the text.
func (m *Meanings) embedOne(ctx context.Context, e Embedding, text string, shorten func(error) bool) ([]vectors.Packed, error) {
	for {
		got, err := m.embed(ctx, e, []string{text})
		if err == nil || ctx.Err() != nil || len(text)/2 < minEmbeddedBytes || !shorten(err) {
			return got, err
		}
		text = truncate(text, len(text)/2)
	}
}

// isTooLong reports whether a provider has refused a text because it has more tokens than its model reads, or may have.
func isTooLong(err error) bool {
	refusal, ok := errors.AsType[interface {
		error
		TooLong() bool
	}](err)
	return ok && refusal.TooLong()
}

// An entryText is the text of an entry.
type entryText struct {
	n       int64
	content string
}

// read reads texts for one request, from sessions in their current state.
func (m *Meanings) read(ctx context.Context, list []pendingSession) (now []pendingSession, err error) {
	left := m.maxTexts
	for _, p := range list {
		if left <= 0 {
			break
		}
		again, err := m.cfg.Table.pending(ctx, "SELECT "+pendingColumns+" FROM sessions WHERE id = ? AND embedded < indexed", p.id)
		if err != nil {
			return nil, err
		}
		for _, p := range again {
			if err := m.readTexts(ctx, &p, left); err != nil {
				return nil, err
			}
			left -= len(p.texts)
			now = append(now, p)
		}
	}
	return now, nil
}

// readTexts reads the texts of a session that have no vectors.
func (m *Meanings) readTexts(ctx context.Context, p *pendingSession, most int) (err error) {
	found, err := m.cfg.Table.db.Read.QueryContext(ctx, "SELECT "+entryColumns+" FROM entries e WHERE e.session = ? AND e.n > ? AND e.n <= ? AND e.kind IN "+mayHaveWords+" AND "+m.vectors.LacksVectorCondition()+" ORDER BY e.n LIMIT ?",
		p.id, p.embedded, p.indexed, entriesPerWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	p.lastRead = p.indexed
	for read := 1; found.Next(); read++ {
		_, e, err := scanEntry(found)
		if err != nil {
			return err
		}
		if said := textToEmbed(e); said != "" && e.N < maxEntries {
			p.texts = append(p.texts, entryText{e.N, said})
		}
		if read == entriesPerWrite || len(p.texts) == most {
			p.lastRead = e.N
			break
		}
	}
	return found.Err()
}

// textToEmbed returns the text from which the vector of an entry is made; "" for an entry without words.
func textToEmbed(e sessions.Entry) string {
	if !hasWords(e) {
		return ""
	}
	s := contentOf(e)
	if s.name != "" && e.Kind == sessions.KindUser {
		s.text = s.name + ": " + s.text
	}
	return s.text
}

// truncate returns the first bytes of a text, at most this many. It must be called after secrets were removed, because it
// could cut a secret in half.
func truncate(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// put writes the vectors of a session, and returns whether the session is unchanged; see [Table.put].
func (m *Meanings) put(tx *sqldb.Tx, h vectors.Hold, of vectors.Identity, p *pendingSession) (still bool, err error) {
	if err := m.vectors.Check(tx, h, of); err != nil {
		return false, err
	}
	if err := m.vectors.Put(tx, p.id, p.vectors); err != nil {
		return false, err
	}
	n, err := tx.Exec("UPDATE sessions SET embedded = ? WHERE id = ? AND key = ? AND embedded = ? AND indexed >= ? AND fence = ? AND erasures = ?", p.lastRead, p.id, p.key, p.embedded, p.lastRead, p.fence, p.erasures)
	return n > 0, err
}

// embed asks for the vectors of texts. It returns errUnusableVectors unless it gets one for each, all of the same length.
func (m *Meanings) embed(ctx context.Context, e Embedding, texts []string) ([]vectors.Packed, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	got, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(got) != len(texts) {
		return nil, errUnusableVectors
	}
	packed := make([]vectors.Packed, len(got))
	for i, v := range got {
		if packed[i] = vectors.Pack(v); packed[i] == nil || len(packed[i]) != len(packed[0]) {
			return nil, errUnusableVectors
		}
	}
	return packed, nil
}

// withoutSecrets returns a text without secrets.
func (m *Meanings) withoutSecrets(text string) string {
	if m.cfg.RemoveSecrets == nil {
		return text
	}
	return m.cfg.RemoveSecrets(text)
}

// identityOf returns the identity of vectors such as this one.
func identityOf(e Embedding, v vectors.Packed) vectors.Identity {
	return vectors.Identity{Model: e.Model, Prompt: promptsOf(e.Model).name, Dimensions: len(v)}
}

// prompts are the texts that are put before a text or a query for the model.
type prompts struct {
	modelPart   string // a part of the model's name
	name        string // must change with text and query, because vectors with different prompts cannot be compared
	text, query string
}

// promptsOf returns the prompts that a model was trained with, judging by its name; most models have
// none.
func promptsOf(model string) prompts {
	for _, p := range []prompts{
		{"nomic-embed", "nomic 1", "search_document: ", "search_query: "},
		{"e5-", "e5 1", "passage: ", "query: "},
		{"mxbai-embed", "mxbai 1", "", "Represent this sentence for searching relevant passages: "},
	} {
		if strings.Contains(strings.ToLower(model), p.modelPart) {
			return p
		}
	}
	return prompts{name: "plain 1"}
}

// An outage records whether and when a provider has failed.
type outage struct {
	mu          sync.Mutex
	lastFailure time.Time // when it last failed; the zero time if it works
}

// begin records a failure, and reports whether the provider worked before.
func (o *outage) begin() (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first = o.lastFailure.IsZero()
	o.lastFailure = time.Now()
	return first
}

// end records that the provider works, and reports whether it had failed before.
func (o *outage) end() (failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	failed = !o.lastFailure.IsZero()
	o.lastFailure = time.Time{}
	return failed
}

// isRecent reports whether the provider has failed within retryPause.
func (o *outage) isRecent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.lastFailure) < retryPause
}
