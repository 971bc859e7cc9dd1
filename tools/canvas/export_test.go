package canvas

import "context"

// Hold takes a place as a document that is read does, until leave is called.
func (r *Reader) Hold(ctx context.Context, session string) (leave func(), err error) {
	return r.places.take(ctx, session)
}
