package searchtest

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/sessions"
)

//go:embed testdata/distractors.txt
var distractors string

// A template is an exchange with slots.
type template struct {
	chats []string
	lines []templateLine
}

type templateLine struct{ who, text string }

// A phrasebook is the parsed content of distractors.txt.
type phrasebook struct {
	slots     map[string][]string
	templates []template
}

// parsePhrasebook reads slots and templates as the beginning of distractors.txt says.
func parsePhrasebook(text string) (phrasebook, error) {
	book := phrasebook{slots: map[string][]string{}}
	var open *template
	var single []string // the chats of single messages
	for n, l := range strings.Split(text, "\n") {
		if l == "" || l[0] == '#' {
			open, single = nil, nil
			continue
		}
		if chats, ok := strings.CutPrefix(l, "+ "); ok {
			single = strings.Fields(chats)
			continue
		}
		if single != nil {
			book.templates = append(book.templates, template{chats: single, lines: parseLines(l)})
			continue
		}
		if chats, ok := strings.CutPrefix(l, "@ "); ok {
			book.templates = append(book.templates, template{chats: strings.Fields(chats)})
			open = &book.templates[len(book.templates)-1]
			continue
		}
		if open != nil {
			who, said, ok := strings.Cut(l, ": ")
			if !ok {
				return book, fmt.Errorf("line %d of the distractors: nobody says it", n+1)
			}
			open.lines = append(open.lines, templateLine{who, said})
			continue
		}
		name, values, ok := strings.Cut(l, " = ")
		if !ok || book.slots[name] != nil {
			return book, fmt.Errorf("line %d of the distractors is no new slot", n+1)
		}
		for v := range strings.SplitSeq(values, " | ") {
			if v == `""` {
				v = ""
			}
			book.slots[name] = append(book.slots[name], v)
		}
	}
	for _, t := range slices.Clone(book.templates) {
		if slices.ContainsFunc(t.lines, func(l templateLine) bool { return l.who[0] == '!' }) {
			book.templates = append(book.templates, t) // once more: tools are called often
		}
	}
	return book, nil
}

// parseLines parses a line below "+ CHATS".
func parseLines(l string) []templateLine {
	said, answer, answered := strings.Cut(l, " >> ")
	if answered {
		return []templateLine{{"A", said}, {"=", answer}}
	}
	return []templateLine{{"A", said}}
}

// A dice is a generator of random numbers (splitmix64) that returns the same numbers with each release of Go.
type dice uint64

func (d *dice) below(n int) int {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

// fill adds exchanges to those that are written until there are size messages.
func fill(written []exchange, size int) ([]exchange, error) {
	book, err := parsePhrasebook(distractors)
	if err != nil {
		return nil, err
	}
	all, missing := written, size
	days := calendar{}
	for _, e := range written {
		missing -= len(e)
		days.take(e)
	}
	d := dice(2026)
	made := 0
	for missing > 0 {
		for _, i := range d.order(len(book.templates)) {
			t := book.templates[i]
			if len(t.lines) > missing {
				continue
			}
			e, err := book.play(t, &d)
			if err != nil {
				return nil, err
			}
			for free := false; !free; free = days.take(e) {
				e.move(d.when(e[0].Chat))
			}
			for i := range e {
				made++
				e[i].ID = fmt.Sprintf("g%04d", made)
			}
			all, missing = append(all, e), missing-len(e)
		}
	}
	return all, nil
}

// order returns the numbers below n in a random order.
func (d *dice) order(n int) []int {
	order := make([]int, n)
	for i := range order {
		j := d.below(i + 1)
		order[i], order[j] = order[j], i
	}
	return order
}

// when returns a minute of the year of the corpus at which people talk in a chat.
func (d *dice) when(chat string) time.Time {
	first := time.Date(2025, time.November, 3, 0, 0, 0, 0, time.UTC)
	for {
		day := first.AddDate(0, 0, d.below(361))
		hour := 7 + d.below(11)
		if strings.HasPrefix(chat, "nora") {
			hour = 6 + d.below(16)
		} else if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday || day.Month() == time.December && day.Day() > 23 {
			continue
		}
		return day.Add(time.Duration(hour)*time.Hour + time.Duration(d.below(60))*time.Minute)
	}
}

// move makes an exchange begin at a time; its messages are a minute apart.
func (e exchange) move(to time.Time) {
	for i := range e {
		e[i].At = to.Add(time.Duration(i) * time.Minute)
	}
}

// A calendar holds the minutes in which somebody talks, by chat.
type calendar map[string]map[time.Time]bool

// take records the minutes from an exchange's first message to its last. It returns false, and records
// nothing, if somebody already talks in one of them.
func (c calendar) take(e exchange) bool {
	taken := c[e[0].Chat]
	if taken == nil {
		taken = map[time.Time]bool{}
		c[e[0].Chat] = taken
	}
	last := e[len(e)-1].At
	for at := e[0].At; !at.After(last); at = at.Add(time.Minute) {
		if taken[at] {
			return false
		}
	}
	for at := e[0].At; !at.After(last); at = at.Add(time.Minute) {
		taken[at] = true
	}
	return true
}

// play makes an exchange from a template.
func (b phrasebook) play(t template, d *dice) (exchange, error) {
	chat := t.chats[d.below(len(t.chats))]
	people := b.slots[chat]
	if len(people) == 0 {
		return nil, fmt.Errorf("nobody is in the chat %s", chat)
	}
	cast := d.order(len(people))
	drawn := slotValues{book: b, dice: d, values: map[string]string{}}
	var e exchange
	for _, l := range t.lines {
		text, err := drawn.expand(l.text)
		if err != nil {
			return nil, err
		}
		m := Message{Chat: chat, Who: Agent, Kind: sessions.KindText, Text: unfold(text)}
		if tool, ok := strings.CutPrefix(l.who, "!"); ok {
			m.Kind, m.Tool = sessions.KindToolResult, tool
		} else if l.who != "=" {
			m.Kind, m.Who = sessions.KindUser, people[cast[int(l.who[0]-'A')%len(cast)]]
		}
		e = append(e, m)
	}
	return e, nil
}

// slotValues are the values that were chosen for the slots of one exchange.
type slotValues struct {
	book   phrasebook
	dice   *dice
	values map[string]string // by slot, with its label
}

// expand fills the slots of a text, and those in their values.
func (d slotValues) expand(text string) (string, error) {
	for {
		before, rest, found := strings.Cut(text, "{")
		if !found {
			return text, nil
		}
		slot, after, found := strings.Cut(rest, "}")
		if !found {
			return "", fmt.Errorf("a slot has no end: %s", rest)
		}
		value, ok := d.values[slot]
		if !ok {
			name, label, _ := strings.Cut(slot, ".")
			var err error
			if value, err = d.value(name, label); err != nil {
				return "", err
			}
			d.values[slot] = value
		}
		text = before + value + after
	}
}

// value draws a value for a slot: one that the slot does not have under another label in this
// exchange, if there is one. Slots in the value get the label, unless they have one of their own.
func (d slotValues) value(name, label string) (string, error) {
	low, high, numbers := strings.Cut(name, "-")
	from, err := strconv.Atoi(low)
	if numbers && err == nil {
		to, err := strconv.Atoi(high)
		if err != nil || to < from {
			return "", fmt.Errorf("no range of numbers: %s", name)
		}
		return strconv.Itoa(from + d.dice.below(to-from+1)), nil
	}
	values := d.book.slots[name]
	if len(values) == 0 {
		return "", fmt.Errorf("no such slot: %s", name)
	}
	first := d.dice.below(len(values))
	for i := range values {
		value, err := d.expand(labelled(values[(first+i)%len(values)], label))
		if err != nil || i == len(values)-1 || !d.isUsed(name, value) {
			return value, err
		}
	}
	return "", nil // there are values
}

// labelled adds a label to the slots in a value.
func labelled(value, label string) string {
	if label == "" {
		return value
	}
	parts := strings.Split(value, "}")
	for i, p := range parts[:len(parts)-1] {
		if _, slot, _ := strings.Cut(p, "{"); !strings.Contains(slot, ".") {
			parts[i] += "." + label
		}
	}
	return strings.Join(parts, "}")
}

// isUsed reports whether a slot already has this value, under any label.
func (d slotValues) isUsed(name, value string) bool {
	for slot, v := range d.values {
		if of, _, _ := strings.Cut(slot, "."); of == name && v == value {
			return true
		}
	}
	return false
}
