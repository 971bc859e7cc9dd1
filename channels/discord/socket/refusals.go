package socket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/gorilla/websocket"

	"parley/channels"
)

// The codes with which Discord closes a connection.
const (
	closedNotAuthenticated = 4003
	closedBadToken         = 4004
	closedBadSeq           = 4007
	closedTimedOut         = 4009
	closedBadShard         = 4010
	closedShardingRequired = 4011
	closedBadVersion       = 4012
	closedBadIntents       = 4013
	closedDisallowed       = 4014
)

// handleClose handles the end of a connection by an error. It returns an error with the fault Stop if the next
// connection would end in the same way, and any other error if the next one may last. If the session can't be
// resumed, it forgets the session.
func (s *Socket) handleClose(ctx context.Context, err error) error {
	closed, ok := errors.AsType[*websocket.CloseError](err)
	if !ok {
		return fmt.Errorf("the connection broke off: %w", err)
	}
	stop := &channels.SendError{Fault: channels.Stop, Code: strconv.Itoa(closed.Code)}
	switch closed.Code {
	case closedBadToken:
		stop.Err = errors.New("the bot token is invalid or revoked")
		return stop
	case closedDisallowed:
		stop.Err = errors.New("the bot isn't allowed to read what people write")
		stop.Remedy = "turn on Message Content Intent under Bot in the developer portal, and start again"
		return stop
	case closedShardingRequired:
		stop.Err = errors.New("the bot is in more servers than one connection may serve")
		stop.Remedy = "remove it from some: Parley serves a bot in up to 2,500 servers"
		return stop
	case closedBadShard, closedBadVersion, closedBadIntents:
		stop.Err = errors.New("the gateway does not work with this release of Parley")
		stop.Remedy = "check whether there's a newer release of Parley, and whether api_url leads to Discord"
		return stop
	case closedNotAuthenticated, closedBadSeq, closedTimedOut:
		s.forgetSession()
	}
	s.Log.LogAttrs(ctx, slog.LevelDebug, "Discord has closed the connection", slog.Int("code", closed.Code))
	return fmt.Errorf("the gateway has closed the connection with code %d", closed.Code)
}
