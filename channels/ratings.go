package channels

import (
	"context"
	"time"

	"parley/bus"
)

// A Rating is what a person thinks of an answer.
type Rating struct {
	Person  string // CHANNEL:USER
	At      bus.Address
	Message string // the platform's id of the answer, or of a part of it
	Session string
	Turn    string // whose answer it is
	Good    bool
	Rated   time.Time
}

// Ratings remembers what people think of answers.
type Ratings interface {
	// Rate keeps what a person thinks of the answer with that id of the platform's in a
	// chat, in place of what they thought before; Session, Turn and the thread are the
	// book's to know. It returns the rating as it is kept; false if the book knows no
	// answer there, or keeps the same already. Durable when it returns.
	Rate(ctx context.Context, r Rating) (kept Rating, changed bool, err error)
	// Rated finds of what a message in a chat is an answer: r with Session, Turn and the
	// thread; false if the book knows no answer there.
	Rated(ctx context.Context, r Rating) (found Rating, ok bool, err error)
	// Unrate forgets a rating, if it is still the one that is given.
	Unrate(ctx context.Context, r Rating) error
	// Ratings lists those of a session, the oldest first.
	Ratings(ctx context.Context, session string) ([]Rating, error)
	// RatingsBy lists those of a person in all sessions, the oldest first.
	RatingsBy(ctx context.Context, person string) ([]Rating, error)
}
