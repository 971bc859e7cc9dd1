package canvas

import "context"

// Hold takes a slot as reading a document does, until leave is called.
func (r *Reader) Hold(ctx context.Context, session string) (leave func(), err error) {
	return r.places.take(ctx, session)
}
