package transcript

import (
	"parley/agent/frames"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

const (
	// pictureTokens estimates how many tokens a model counts for a picture.
	pictureTokens = 1200
	// pictureTurns is the number of turns in which a picture is shown: the one in which it arrived, and the
	// next.
	pictureTurns = 2
	// maxPictures is the most pictures in a request; the newest are used.
	maxPictures = 20
)

// turnsWithPictures returns the turns whose pictures are still shown: own, and the last turn that began before
// it. Of other turns, only the paths of pictures are shown.
func turnsWithPictures(records []journal.Record, own string) map[string]bool {
	shown := map[string]bool{}
	if own != "" {
		shown[own] = true
	}
	for i := len(records) - 1; i >= 0 && len(shown) < pictureTurns; i-- {
		if records[i].Kind == sessions.KindTurnStarted {
			shown[records[i].Turn] = true
		}
	}
	return shown
}

// addPicture adds a picture, or only its path if it is no longer shown. The path appears in the request
// unescaped and outside of all frames, and strangers may have chosen it.
func (r *rendering) addPicture(p sessions.Picture, shown bool) {
	if !shown {
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: NamePicture(p.Path, "it was shown before; the tool image shows it again")})
		return
	}
	r.add(llm.RoleUser, llm.Block{Kind: llm.BlockPicture, Picture: &llm.Picture{Path: frames.Escape(p.Path), View: p.View, Hash: p.Hash, Type: p.Type}})
}

// NamePicture returns the text that replaces a picture that is not in the request; it says why.
func NamePicture(path, why string) string {
	return frameNotice(sessions.Notice{Text: "[picture " + path + ": " + why + "]"})
}

// limitPictures keeps the newest pictures in a request, and replaces older ones with their paths.
func limitPictures(messages []llm.Message) {
	left := maxPictures
	for i := len(messages) - 1; i >= 0; i-- {
		blocks := messages[i].Blocks
		for j := len(blocks) - 1; j >= 0; j-- {
			if blocks[j].Kind != llm.BlockPicture {
				continue
			}
			if left--; left < 0 {
				blocks[j] = llm.Block{Kind: llm.BlockText, Text: NamePicture(blocks[j].Picture.Path, "there are too many to be shown at once; the tool image shows it")}
			}
		}
	}
}
