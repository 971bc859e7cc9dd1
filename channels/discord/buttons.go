package discord

import (
	"strconv"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
)

// maxButtonsPerRow is how many buttons Discord accepts in a row, maxButtonRows how many rows, and maxButtonData how
// many bytes of data a button can carry, which Discord sends back when the button is pressed. The last number does
// not include the number that buttonRows puts in front of the data to keep two buttons apart.
const (
	maxButtonsPerRow = 5
	maxButtonRows    = 5
	maxButtonData    = 96
)

// buttonRows returns buttons in rows of five, as Discord requires.
func buttonRows(buttons []bus.Button) (all []discordgo.MessageComponent) {
	for from := 0; from < len(buttons); from += maxButtonsPerRow {
		var row discordgo.ActionsRow
		for i, b := range buttons[from:min(from+maxButtonsPerRow, len(buttons))] {
			row.Components = append(row.Components, discordgo.Button{
				Label: b.Label, Style: discordgo.SecondaryButton, CustomID: strconv.Itoa(from+i) + " " + b.Says,
			})
		}
		all = append(all, row)
	}
	return all
}
