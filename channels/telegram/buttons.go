package telegram

import (
	"github.com/go-telegram/bot/models"

	"parley/bus"
)

// maxButtons is how many buttons Telegram accepts below a message, and maxButtonData how many bytes of data each
// button can carry; Telegram sends the data back when the button is pressed.
const (
	maxButtons    = 100
	maxButtonData = 64
)

// inlineKeyboard returns buttons in the form in which Telegram shows them, each in a row of its own. To show none, and to
// remove existing ones, it must be nil and not an empty keyboard.
func inlineKeyboard(buttons []bus.Button) models.ReplyMarkup {
	if len(buttons) == 0 {
		return nil
	}
	rows := make([][]models.InlineKeyboardButton, len(buttons))
	for i, b := range buttons {
		rows[i] = []models.InlineKeyboardButton{{Text: b.Label, CallbackData: b.Says}}
	}
	return models.InlineKeyboardMarkup{InlineKeyboard: rows}
}
