package channels

import (
	"context"
	"time"

	"parley/bus"
)

// A Rating is a person's opinion of an answer: good or bad.
type Rating struct {
	Person  string // CHANNEL:USER
	At      bus.Address
	Message string // the platform's id of the answer, or of one part of it
	Session string
	Turn    string // the turn that gave the answer
	Good    bool
	Rated   time.Time
}

// Ratings remembers people's ratings of answers.
type Ratings interface {
	// Rate stores a person's rating of an answer in place of the person's earlier one. r identifies the answer by
	// its chat and the platform's id of a message; the book fills in Session, Turn and the thread. Rate returns the
	// stored rating, and false if the book knows no answer there or already has the same rating. The rating is
	// durable when Rate returns.
	Rate(ctx context.Context, r Rating) (kept Rating, changed bool, err error)
	// FindRatedAnswer looks up the answer that contains r's message, and returns r with Session, Turn and the thread; false
	// if the book knows no answer there.
	FindRatedAnswer(ctx context.Context, r Rating) (found Rating, ok bool, err error)
	// DeleteRating deletes the rating r, unless the person has given another one since.
	DeleteRating(ctx context.Context, r Rating) error
	// Ratings lists the ratings of a session's answers, the oldest first.
	Ratings(ctx context.Context, session string) ([]Rating, error)
	// RatingsBy lists a person's ratings in all sessions, the oldest first.
	RatingsBy(ctx context.Context, person string) ([]Rating, error)
}
