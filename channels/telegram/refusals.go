package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
)

// sendError classifies a failed send. It drops the texts from go-telegram/bot, because Telegram's descriptions can
// quote the message to be sent.
func sendError(err error, t *requestTrace) *channels.SendError {
	if limited, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		return &channels.SendError{
			Fault: channels.Retry, Code: "429", Err: bot.ErrorTooManyRequests,
			RateLimited: true, RetryAfter: time.Duration(limited.RetryAfter) * time.Second,
		}
	}
	if moved, ok := errors.AsType[*bot.MigrateError](err); ok {
		return &channels.SendError{
			Fault: channels.Retry, Code: "migrated", Err: bot.ErrorBadRequest,
			MovedTo: strconv.Itoa(moved.MigrateToChatID),
		}
	}
	switch {
	case errors.Is(err, bot.ErrorUnauthorized):
		return &channels.SendError{Fault: channels.Stop, Code: "401", Err: bot.ErrorUnauthorized}
	case errors.Is(err, bot.ErrorNotFound):
		return &channels.SendError{Fault: channels.Stop, Code: "404", Err: bot.ErrorNotFound}
	case errors.Is(err, bot.ErrorForbidden):
		return &channels.SendError{Fault: channels.Rejected, Code: refusalCode(err, "403"), Err: bot.ErrorForbidden}
	case errors.Is(err, bot.ErrorBadRequest):
		return &channels.SendError{Fault: channels.Rejected, Code: refusalCode(err, codeBadRequest), Err: bot.ErrorBadRequest}
	}
	return unansweredError(err, t)
}

// unansweredError classifies a failed send that got no readable answer from the Bot API.
func unansweredError(err error, t *requestTrace) *channels.SendError {
	status := int(t.status.Load())
	switch {
	case status == 0 && t.written.Load():
		return &channels.SendError{Fault: channels.Unknown, Code: "cut_off", Err: withoutURL(err)}
	case status == 0:
		return &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: withoutURL(err)}
	case status == http.StatusRequestEntityTooLarge:
		return &channels.SendError{Fault: channels.Rejected, Code: "too_large", Err: fmt.Errorf("HTTP status %d", status)}
	case status >= 300 && status < 500:
		// A proxy, not Telegram, refused the request.
		return &channels.SendError{Fault: channels.Retry, Code: "http_" + strconv.Itoa(status), Err: fmt.Errorf("HTTP status %d", status)}
	}
	return &channels.SendError{Fault: channels.Unknown, Code: "http_" + strconv.Itoa(status), Err: fmt.Errorf("HTTP status %d", status)}
}

// These error codes decide what happens after a refusal.
const (
	codeBadMarkup   = "bad_markup"
	codeTooLong     = "too_long"
	codeEmptyText   = "empty"
	codeBadPhoto    = "bad_photo"
	codeNoVoice     = "no_voice" // the person or the group accepts no voice notes
	codeBadRequest  = "400"      // refused for an unknown reason
	codeNotModified = "not_modified"
)

// hasCode reports whether a call was refused with that code.
func hasCode(err error, code string) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && refusal.Code == code
}

// refusalCode returns a code for a refusal. Telegram distinguishes refusals only by a text for people; if the text
// is unknown, the code is the status. The code decides whether a text is sent once more without markup, whether a
// picture is sent again as a file, and whether an edit changed nothing; Channel.Refusal reads it too.
func refusalCode(err error, status string) string {
	text := strings.ToLower(err.Error())
	for _, known := range [...]struct{ text, code string }{
		{"can't parse entities", codeBadMarkup},
		{"entities_too_long", codeBadMarkup},
		{"message is not modified", codeNotModified},
		{"message to edit not found", "edit_not_found"},
		{"message can't be edited", "not_editable"},
		{"no text in the message to edit", "not_editable"},
		{"caption is too long", codeTooLong},
		{"photo_invalid", codeBadPhoto},
		{"photo_save_file_invalid", codeBadPhoto},
		{"image_process_failed", codeBadPhoto},
		{"voice_messages_forbidden", codeNoVoice},
		{"not enough rights to send voice", codeNoVoice},
		{"file must be non-empty", "empty_file"},
		{"chat not found", "chat_not_found"},
		{"blocked by the user", "blocked"},
		{"user is deactivated", "deactivated"},
		{"can't initiate conversation", "not_started"},
		{"kicked", "kicked"},
		{"not a member", "not_a_member"},
		{"not enough rights", "no_rights"},
		{"thread not found", "thread_not_found"},
		{"topic_closed", "topic_closed"},
		{"message is too long", codeTooLong},
		{"message text is empty", codeEmptyText},
	} {
		if strings.Contains(text, known.text) {
			return known.code
		}
	}
	return status
}
