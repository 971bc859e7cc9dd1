// Package billing tells people what models have cost, and how much they may cost.
//
// billing.go answers /usage; caps.go tells owners about caps that are nearly used up, and says how much of each cap is
// used; defaults.go tells owners about caps that apply although nobody has set them; sweep.go settles reservations of turns that
// nobody works on anymore.
package billing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/bill"
)

// A UsageReporter answers the command /usage, with which people ask what models have cost.
type UsageReporter struct {
	// Usage adds up what has been used; see [bill.Table].
	Usage func(ctx context.Context, by bill.Grouping, from, to time.Time) ([]bill.Sum, error)
	// Linked returns everybody who is known to be the same person as this one, on this and other channels; nobody
	// if there are no others.
	Linked func(ctx context.Context, person string) ([]string, error)
	// Caps returns how much models may cost now. The function is nil if no price is known.
	Caps func() Caps
	// Budget says what is reserved, and how much of each cap is used.
	Budget Budget
	// Prices is the date of the price list from which costs are computed.
	Prices string
}

// A Budget limits what models may cost; see [bill.Budget].
type Budget interface {
	SetAside(ctx context.Context) (bill.OpenReservations, error)
	CapState(ctx context.Context, aside bill.OpenReservations, c bill.Cap, setting string, at time.Time) (bill.CapState, error)
}

// Answer returns a text that says what the sender of a command has used. If the sender is an owner in a private
// chat, it also says what everybody has used together.
func (d *UsageReporter) Answer(ctx context.Context, in bus.Inbound) (string, error) {
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	caps := Caps{}
	if d.Caps != nil {
		caps = d.Caps()
	}
	same, err := d.Linked(ctx, in.From.ID)
	if err != nil {
		return "", err
	}
	same = append(same, in.From.ID)
	aside, err := d.Budget.SetAside(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, span := range []struct {
		name     string
		from     time.Time
		own, all int64 // caps
	}{{"today", now, caps.UserDay, caps.Day}, {"this month", month, 0, caps.Month}} {
		ownAside, allAside, err := asideOf(aside, same, span.from, now)
		if err != nil {
			return "", err
		}
		people, err := d.Usage(ctx, bill.ByPerson, span.from, now)
		if err != nil {
			return "", err
		}
		own, all := sumOwnAndAll(same, people)
		fmt.Fprintf(&b, "- you, %s: %s\n", span.name, FormatSum(own)+asideSuffix(ownAside)+capSuffix(span.own))
		if in.From.Owner && !in.Group {
			fmt.Fprintf(&b, "- everyone, %s: %s\n", span.name, FormatSum(all)+asideSuffix(allAside)+capSuffix(span.all))
		}
	}
	fmt.Fprintf(&b, textPrices, d.Prices)
	return b.String(), nil
}

// asideOf returns how much is reserved for a person, who has these ids, and for everybody. If the period begins
// today, it counts the reservations under daily caps, and otherwise those under monthly caps, which persons do not
// have.
func asideOf(aside bill.OpenReservations, same []string, from, now time.Time) (own, all int64, err error) {
	if from != now {
		all, err = aside.ForCap(bill.Cap{IsMonthly: true}, now)
		return 0, all, err
	}
	seen := map[string]bool{}
	for _, id := range same {
		if seen[id] {
			continue
		}
		seen[id] = true
		micro, err := aside.ForCap(bill.Cap{Subject: bill.Person(id)}, now)
		if err != nil {
			return 0, 0, err
		}
		own += micro
	}
	all, err = aside.ForCap(bill.Cap{}, now)
	return own, all, err
}

// asideSuffix returns the words about a reserved amount, in micro-dollars, that follow a sum; "" if the amount is
// 0.
func asideSuffix(micro int64) string {
	if micro == 0 {
		return ""
	}
	return ", and " + bill.DollarsToFour(micro) + " set aside for answers in progress"
}

// capSuffix returns the words about a cap that follow a sum; "" if there is no cap. micro is the cap in
// micro-dollars.
func capSuffix(micro int64) string {
	if micro == 0 {
		return ""
	}
	return "; the limit is " + bill.Dollars(micro)
}

// sumOwnAndAll adds up what one person has used, under all of their ids (same), and what everybody has used.
func sumOwnAndAll(same []string, people []bill.Sum) (own, all bill.Sum) {
	for _, p := range people {
		all = addSums(all, p)
		if slices.Contains(same, p.Key) {
			own = addSums(own, p)
		}
	}
	return own, all
}

// addSums adds two sums field by field.
func addSums(a, b bill.Sum) bill.Sum {
	return bill.Sum{
		Calls: a.Calls + b.Calls, Input: a.Input + b.Input, Cached: a.Cached + b.Cached, Output: a.Output + b.Output, Reasoning: a.Reasoning + b.Reasoning,
		Microdollars: a.Microdollars + b.Microdollars, Estimated: a.Estimated + b.Estimated, Unpriced: a.Unpriced + b.Unpriced,
	}
}

// unpriced returns the words about calls whose price nobody knows.
func unpriced(calls int64) string {
	if calls == 1 {
		return "one call of unknown cost"
	}
	return bill.Grouped(calls) + " calls of unknown cost"
}

// FormatSum puts a sum into words for people.
func FormatSum(s bill.Sum) string {
	if s.Calls == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("%s tokens in %s model calls, ", bill.Grouped(s.Input+s.Output), bill.Grouped(s.Calls))
	if s.Calls == 1 {
		text = fmt.Sprintf("%s tokens in one model call, ", bill.Grouped(s.Input+s.Output))
	}
	switch {
	case s.Unpriced == s.Calls:
		return text + "at an unknown cost"
	case s.Unpriced > 0:
		text += bill.Dollars(s.Microdollars) + ", plus " + unpriced(s.Unpriced)
	default:
		text += bill.Dollars(s.Microdollars)
	}
	if s.Estimated > 0 {
		text += fmt.Sprintf(" (%d estimated)", s.Estimated)
	}
	return text
}
