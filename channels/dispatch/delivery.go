package dispatch

import (
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/files"
)

// Codes that the dispatcher itself records, in addition to the platforms' codes.
const (
	codeUndecodable    = "undecodable"
	codePanicked       = "panicked"
	codeExpired        = "expired"
	codeEmpty          = "empty"
	codeBadAddress     = "bad_address"
	codeGivenUp        = "given_up"
	codeUnknownOutcome = "unknown"

	codeCannotSendFiles = "cannot_send_files"
)

// A delivery is one message on its way to the platform.
type delivery struct {
	lease        bus.Lease
	out          bus.Outbound
	to           bus.Address   // where the message goes: out.To, or the chat's new id if it moved
	record       channels.Send // the book's record of the message; its ID is also the message's id on the bus
	justRecorded bool          // this process has just recorded the first part as sending
	attempts     int
	startedAt    time.Time
	sendReserved bool              // clearance.awaitPace has reserved a send under the rate limits that has not been made yet
	markdown     map[string]string // the Markdown of each rendered text; made when first needed

	files []files.File
}

// isSettled reports whether nothing more has to be done for a part: it was sent, or nobody will ever know whether
// it was, or it is a file that the message goes out without.
func (d *delivery) isSettled(i int) bool {
	p := d.record.Parts[i]
	return p.State == channels.Sent || p.State == channels.OutcomeUnknown || isLeftOut(p)
}

// hasArrived reports whether the whole message was sent, except for files that it went out without.
func (d *delivery) hasArrived() bool {
	sent := false
	for _, p := range d.record.Parts {
		if p.State != channels.Sent && !isLeftOut(p) {
			return false
		}
		sent = sent || p.State == channels.Sent
	}
	return sent
}

// mayHaveArrived reports whether at least one part of the message was sent, or may have been.
func (d *delivery) mayHaveArrived() bool {
	return slices.ContainsFunc(d.record.Parts, func(p channels.SentPart) bool { return p.State == channels.Sent || p.State == channels.OutcomeUnknown })
}

// hasExpired reports whether the message is past its expiry, so nobody wants it anymore.
func (d *delivery) hasExpired() bool {
	return !d.out.Expires.IsZero() && !time.Now().Before(d.out.Expires)
}

// partExpired reports whether a part must not be sent anymore because the message has expired. If one part has
// arrived, the rest of the message is sent too, however late.
func (d *delivery) partExpired(i int) bool {
	if !d.hasExpired() {
		return false
	}
	for _, p := range d.record.Parts[:i] {
		if p.State == channels.Sent {
			return false
		}
	}
	return true
}

// firstSent returns the platform's id of the first part that was sent; "" if none was.
func (d *delivery) firstSent() string {
	for _, p := range d.record.Parts {
		if p.State == channels.Sent {
			return p.PlatformID
		}
	}
	return ""
}

// fileOf returns the file that belongs to a part: the first part with a file gets the message's first file, and so
// on. It returns false if the part has none.
func (d *delivery) fileOf(part int) (files.File, bool) {
	if !d.record.Parts[part].File {
		return files.File{}, false
	}
	n := 0
	for _, p := range d.record.Parts[:part] {
		if p.File {
			n++
		}
	}
	switch {
	case n < len(d.files):
		return d.files[n], true
	case n == len(d.files) && d.out.Text != "":
		return files.TextFile(d.out), true
	}
	return files.File{}, false
}

// A file that a message goes out without is recorded as a failed part, whose code is leftOutPrefix followed by
// fileMissing or by the platform's own code.
const (
	leftOutPrefix = "file:"
	fileMissing   = "file_missing"
)

// isLeftOut reports whether a part is a file that the message goes out without.
func isLeftOut(p channels.SentPart) bool {
	return p.State == channels.Failed && p.File && strings.HasPrefix(p.Code, leftOutPrefix)
}

func isPartSent(p channels.SentPart) bool { return p.State == channels.Sent }
