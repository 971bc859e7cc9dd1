package api

import (
	"context"
	"net/http"

	"parley/bus"
	"parley/channels/why"
	"parley/cmd/parley/api/exchange"
)

// WhyRoutes returns the route that reports what became of messages. tell makes the reports.
func WhyRoutes(tell func(ctx context.Context, id string) (why.Report, error)) []exchange.Route {
	// show answers with what became of a message, or of the newest messages of a session or a chat.
	show := func(w *exchange.Answer, r *http.Request) error {
		w.ID = r.PathValue("id")
		if !bus.IsClean(w.ID) || len(w.ID) > bus.MaxID {
			return exchange.BadRequest("bad_id", "that isn't a message's id, a session's key or an address: give one of these")
		}
		told, err := tell(r.Context(), w.ID)
		if err != nil {
			return err
		}
		return w.JSON(http.StatusOK, told)
	}
	return []exchange.Route{{Pattern: "GET /v1/why/{id}", May: exchange.Caller.IsAdmin, Serve: show}}
}
