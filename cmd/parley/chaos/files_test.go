package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"parley/agent/agenttest"
	"parley/bus"
	"parley/channels/discord/discordtest"
	"parley/channels/files/copies"
	"parley/channels/slack/slacktest"
	"parley/channels/sqlbook"
	"parley/channels/telegram/telegramtest"
	"parley/sessions"
	"parley/sessions/outgoing"
	"parley/sessions/workspace"
)

// This file covers the files that people send with a message, and the files that the agent sends. No two files are the
// same.

// attaches reports whether the request's message has a file.
func (s request) attaches() bool { return s.what == askFile || s.what == askPicture }

// fileText returns the text of a file that a person or the agent sends. It has between one and 120 lines.
func (s request) fileText() string {
	var b strings.Builder
	for i := range 1 + (s.who+37*s.n)%120 {
		fmt.Fprintf(&b, "line %d of %s\n", i+1, s.mark())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// colour returns the color of the picture that a person sends.
func (s request) colour() color.RGBA {
	return color.RGBA{R: uint8(s.who), G: uint8(s.n), B: uint8(7*s.who + 13*s.n), A: 255}
}

// picture returns a picture with this color everywhere.
func (s request) picture() []byte {
	p := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		p.Set(i%8, i/8, s.colour())
	}
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}

// file returns the content of the file that comes with the message, or that the message makes the agent send.
func (s request) file() []byte {
	if s.what == askPicture {
		return s.picture()
	}
	return []byte(s.fileText())
}

// sentName returns the name of the file that the agent writes and sends.
func (s request) sentName() string { return "out-" + s.mark() + ".txt" }

// returnCaption returns the text with which the agent sends a request's picture back.
func (s request) returnCaption() string { return "back " + s.mark() }

// sighting returns what a model can say about a message's file only if it was shown the file.
func (s request) sighting() string {
	if s.what == askPicture {
		return colourName(s.colour())
	}
	return digest([]byte(s.fileText()))
}

func colourName(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}

// attach sends a person's message with a file.
func (f *fleet) attach(p *chat, s request) {
	text := s.text()
	name, kind := "in-"+s.mark()+".txt", "text/plain"
	if s.what == askPicture {
		name, kind = "in-"+s.mark()+".png", "image/png"
	}
	switch {
	case p.at.Channel == "telegram" && s.what == askPicture:
		f.Telegram.Attach(int64(p.who), int64(p.who), "photo", name, s.file(), map[string]any{"caption": text})
	case p.at.Channel == "telegram":
		f.Telegram.Attach(int64(p.who), int64(p.who), "document", name, s.file(), map[string]any{"caption": text})
	case p.at.Channel == "discord":
		f.dc.Post(p.discordChannel(), fmt.Sprint(p.who), map[string]any{"content": text, "attachments": []any{f.dc.AddFile(name, kind, s.file())}})
	default:
		fields := map[string]any{"text": text}
		if p.at.Thread != "" {
			fields["thread_ts"] = p.at.Thread
		}
		f.sl.Attach(p.at.Chat, fmt.Sprint("U", p.who), name, kind, s.file(), fields)
	}
}

// stripKindPrefix removes the prefix that adapters put before a message that contains more than text, such as "[photo]
// ".
func stripKindPrefix(text string) string {
	if _, rest, ok := strings.Cut(text, "] "); ok && strings.HasPrefix(text, "[") {
		return rest
	}
	return text
}

// fileEntry returns the entry that stands for a file among the messages at an address.
func fileEntry(name string, content []byte) string { return "file " + name + " " + digest(content) }

// A seenFile is a file that came with a message, as the model was shown it.
type seenFile struct {
	path   string // its path in the workspace
	colour string // the color, if it is a picture
}

// filesOf returns the files that came with each message of a turn, as the model was shown them, by the message's text.
func filesOf(turn []agenttest.Message) map[string]seenFile {
	all := map[string]seenFile{}
	for _, m := range turn {
		pictures := m.Pictures
		for _, block := range strings.Split(m.Content, "<message ")[1:] {
			_, block, _ = strings.Cut(block, ">\n")
			text, rest, ok := strings.Cut(block, "\n<attachment ")
			if !ok {
				continue
			}
			tag, _, _ := strings.Cut(rest, ">")
			_, at, _ := strings.Cut(tag, ` path="`)
			at, _, _ = strings.Cut(at, `"`)
			seen := seenFile{path: at}
			if strings.Contains(tag, `type="image/png"`) && len(pictures) > 0 && !strings.Contains(m.Content, "[picture "+at+": ") {
				seen.colour, pictures = colourIn(pictures[0]), pictures[1:]
			}
			all[text] = seen
		}
	}
	return all
}

// colourIn returns the color of a picture that a model was shown as a data: URL.
func colourIn(address string) string {
	_, data, _ := strings.Cut(address, ";base64,")
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "undecodable"
	}
	shown, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return "unreadable"
	}
	return colourName(shown.At(0, 0))
}

// sawNothing is what the model says about a file that was not fetched.
const sawNothing = "nothing"

// sightingIn returns what the model says about the file of a request, depending on what it was shown, or on what its
// last call read.
func (s request) sightingIn(results []string) string {
	if s.came.path == "" {
		return sawNothing
	}
	if s.what == askPicture {
		return s.came.colour
	}
	for _, result := range slices.Backward(results) {
		var got struct {
			Content *string `json:"content"`
		}
		if json.Unmarshal([]byte(result), &got) == nil && got.Content != nil {
			return digest([]byte(*got.Content))
		}
	}
	return "unread"
}

// failFiles makes one call that fetches or sends files fail.
func failFiles(s *storm, random *rand.Rand) {
	switch random.IntN(7) {
	case 0:
		s.Telegram.Fail(telegramtest.Fault{Method: "sendDocument", Times: 1, Act: telegramtest.Cut})
		s.countFault("cut an answer of Telegram's to a file")
	case 1:
		s.Telegram.Fail(telegramtest.Fault{Method: "sendPhoto", Times: 1, Act: telegramtest.Refuse, Status: 502, Description: "Bad Gateway"})
		s.countFault("failed a send of a picture to Telegram")
	case 2:
		s.Telegram.Fail(telegramtest.Fault{Method: "getFile", Times: 1, Act: telegramtest.Refuse, Status: 429, Description: "Too Many Requests: retry after 1", RetryAfter: 1})
		s.countFault("limited a fetch from Telegram")
	case 3:
		s.sl.Fail("files.completeUploadExternal", "", 1, slacktest.Cut(true))
		s.countFault("cut an answer of Slack's to a file")
	case 4:
		s.sl.Fail("files.getUploadURLExternal", "", 1, slacktest.Status(503, "out for a moment"))
		s.countFault("failed a send of a file to Slack")
	case 5:
		s.dc.Fail("GET files", "", 1, discordtest.Cut(false))
		s.countFault("cut a fetch from Discord")
	case 6:
		s.dc.Fail("GET files", "", 1, discordtest.Answer(502, "Bad Gateway"))
		s.countFault("failed a fetch from Discord")
	}
}

// expectFiles records that files must be shown at an address. send is the id of the call that sends them, and content
// is the text that comes with them.
func (l *logAudit) expectFiles(address, send, content string, paths []string) {
	for _, text := range l.filesShown(content, paths) {
		l.expectText(address, text, send)
		l.sentFiles++
	}
}

// filesShown returns the entries that stand for the files that a call or an answer sends.
func (l *logAudit) filesShown(content string, paths []string) (all []string) {
	for _, name := range paths {
		i := slices.IndexFunc(l.said, func(m request) bool { return name == m.sentName() || content == m.returnCaption() })
		if i < 0 {
			l.addViolation("%s: %s was to be sent with %q, and nobody has asked for it", l.key, name, content)
			continue
		}
		all = append(all, fileEntry(path.Base(name), l.said[i].file()))
	}
	return all
}

// replyFiles checks that an answer has exactly the files that its text shows, and records that they must be sent.
func (l *logAudit) replyFiles(r sessions.Reply) {
	var refs []bus.FileRef
	if err := json.Unmarshal(r.Files, &refs); err != nil && len(r.Files) > 0 {
		l.addViolation("%s: the files of %s cannot be read: %v", l.key, r.ID, err)
	}
	switch shown := strings.Count(r.Text, "!["); {
	case shown > 0 && len(refs) == 0 && (strings.Contains(r.Text, filesExcuse) || strings.Contains(r.Text, filesExcuseBefore)):
		l.unsent += shown
	case shown != len(refs) && !l.spoiled:
		l.addViolation("%s: %s shows %d files and has %d", l.key, r.ID, shown, len(refs))
	}
	for _, ref := range refs {
		l.expectFiles(l.address, r.ID, "", []string{ref.Path})
	}
}

// platformText returns the text of an answer with files in the form in which platforms show it.
func platformText(text string) string {
	return withoutExcuse(strings.ReplaceAll(text, "![the file](", "the file ("))
}

// filesExcuse and filesExcuseBefore are what an answer says if its files cannot be sent, because it is not known
// whether all processes can send files.
const (
	filesExcuse       = "I can't send files right now"
	filesExcuseBefore = "Files cannot be sent now" // the same in the words of the previous release
)

// notFetched is what an answer says if a message's file cannot be fetched, because it is not known whether all
// processes understand files. whyNot is the reason that it gives.
const (
	notFetched = "I didn't get "
	whyNot     = "a process of an older release" // "is still running", or in the previous release "still serves"
)

// withoutExcuse removes the excuses about files from a text.
func withoutExcuse(text string) string {
	end := len(text)
	for _, words := range []string{filesExcuse, filesExcuseBefore, notFetched, "I did not get "} { // the last is in the words of the previous release
		if at := strings.Index(text, words); at >= 0 {
			end = min(end, at)
		}
	}
	if end == len(text) {
		return text
	}
	return strings.TrimRight(text[:end], "_*( \n")
}

// checkSightings checks that an answer to messages with files says what is in the files.
func (l *logAudit) checkSightings(text string) {
	for _, n := range answersTo(platformText(text), l.said[0].who) {
		if n >= len(l.said) || !l.said[n].attaches() || strings.HasSuffix(text, " failed: see the log") {
			continue
		}
		m := l.said[n]
		if m.seen = sawNothing; strings.Contains(text, m.answer()) && strings.Contains(text, whyNot) {
			l.unfetched++
			l.missing[digest(m.file())] = true
			continue
		}
		if m.seen = m.sighting(); !strings.Contains(text, m.answer()) && !l.spoiled {
			l.addViolation("%s: the answer %q does not tell what was in the file of %s, want %q", l.key, text, m.mark(), m.answer())
			continue
		}
		l.seenFiles++
	}
}

// checkFetched compares the fetched files with the files that people sent: each is there once, and no other file is.
func (l *logAudit) checkFetched(dir *workspace.Dir) {
	want := map[string]int{}
	for _, m := range l.said {
		if m.attaches() {
			want[digest(m.file())]++
		}
	}
	entries, err := fs.ReadDir(dir, "attachments")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.addViolation("%s: %v", l.key, err)
	}
	for _, e := range entries {
		raw, err := fs.ReadFile(dir, "attachments/"+e.Name())
		if err != nil {
			l.addViolation("%s: %v", l.key, err)
		}
		if want[digest(raw)]--; want[digest(raw)] < 0 {
			l.addViolation("%s: %s is there, and nobody has sent it, or it is there twice", l.key, e.Name())
		}
	}
	for sum, n := range want {
		if n > 0 && !l.spoiled && !l.missing[sum] {
			l.addViolation("%s: a file that somebody has sent is not there: %s", l.key, sum)
		}
	}
}

// noteLeftFiles records whether a call that sends files may have left copies of them, because the call was started
// again after the files were gone, or because it failed.
func (l *logAudit) noteLeftFiles(c *callSeen, send string) {
	if c.started > 1 || c.code != "" {
		l.mayLeave[send] = true
	}
}

// checkOutgoing checks that no file still waits to be sent. Copies of the files of interrupted calls and answers must
// have been removed.
func (a *audit) checkOutgoing() {
	t := a.storm.T
	store, err := outgoing.Open(a.storm.root, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	refs, err := store.References(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	a.swept = len(refs)
	for _, r := range refs {
		if !a.mayLeave[r.Message] {
			a.addViolation("files of %s still wait to be sent, and nothing has cut it off", r.Message)
		}
	}
	b := a.storm.openBus()
	defer b.Close()
	book, err := sqlbook.Open(t.Context(), a.storm.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	sweeper := copies.Sweeper{Files: copies.Files{Store: store}, Bus: b, Book: book, Log: slog.New(slog.DiscardHandler)}
	if _, err := sweeper.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if refs, err = store.References(t.Context(), ""); err != nil || len(refs) > 0 {
		a.addViolation("files wait to be sent, for %v, %v", refs, err)
	}
}
