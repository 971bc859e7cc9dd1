package discord

import (
	"fmt"
	"strings"
)

// maxGaps is the maximum number of gaps that are kept; beyond it, the two oldest are merged.
const maxGaps = 100

// gaps are the periods, as ranges of ids, in which the bot was away and received nothing. Discord does not tell the
// bot who wrote to it privately in the meantime. If the book does not know such a person, the bot notices only when
// the person writes again, and then reads their chat. Messages outside of the gaps were received and handled when
// they came.
type gaps struct {
	all   []gap // the oldest first
	dirty bool  // whether the book does not have the newest state yet
}

// A gap is a range of ids: those greater than from, up to and including to.
type gap struct {
	from, to uint64 // `to` is 0 until a later message is received
}

// open begins a gap after the id from, and removes gaps that end before the id least. If there are too many, it
// joins the oldest two.
func (h *gaps) open(from, least uint64) {
	for len(h.all) > 0 && h.all[0].to != 0 && h.all[0].to < least {
		h.all = h.all[1:]
	}
	h.dirty = true
	if n := len(h.all); n > 0 && (h.all[n-1].to == 0 || h.all[n-1].to >= from) {
		h.all[n-1].to = 0 // a gap that begins inside another one extends it
		return
	}
	h.all = append(h.all, gap{from: from})
	if len(h.all) > maxGaps {
		h.all[1].from = h.all[0].from
		h.all = h.all[1:]
	}
}

// closeLast ends the open gap just before the message with that id, which was received.
func (h *gaps) closeLast(id uint64) {
	if n := len(h.all); n > 0 && h.all[n-1].to == 0 {
		h.all[n-1].to, h.dirty = max(id-1, h.all[n-1].from), true
	}
}

// earliest returns the beginning of the first gap, or id if that is lower.
func (h *gaps) earliest(id uint64) uint64 {
	if len(h.all) > 0 {
		return min(id, h.all[0].from)
	}
	return id
}

// contains reports whether an id lies in a gap.
func (h *gaps) contains(id uint64) bool {
	for _, one := range h.all {
		if id > one.from && (one.to == 0 || id <= one.to) {
			return true
		}
	}
	return false
}

// String returns the gaps in the form in which the book stores them.
func (h *gaps) String() string {
	var all []string
	for _, one := range h.all {
		all = append(all, fmt.Sprintf("%d-%d", one.from, one.to))
	}
	return strings.Join(all, " ")
}

// parseGaps parses the form that String writes; it skips words that it can't parse.
func parseGaps(text string) (h gaps) {
	for word := range strings.FieldsSeq(text) {
		var one gap
		if n, err := fmt.Sscanf(word, "%d-%d", &one.from, &one.to); n == 2 && err == nil {
			h.all = append(h.all, one)
		}
	}
	return h
}
