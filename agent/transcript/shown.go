package transcript

import "parley/agent/llm"

// ShowPictures fills in the content of the pictures in messages, using the function read, which is nil if the
// model sees no pictures. It replaces a picture by a text if its file is missing or changed, or if read is nil.
func ShowPictures(messages []llm.Message, read func(llm.Picture) []byte) {
	why := "it is no longer there as it was shown"
	if read == nil {
		why = "you cannot see pictures"
	}
	for _, m := range messages {
		for i, b := range m.Blocks {
			if b.Kind != llm.BlockPicture {
				continue
			}
			if read != nil {
				b.Picture.Data = read(*b.Picture)
			}
			if len(b.Picture.Data) == 0 {
				m.Blocks[i] = llm.Block{Kind: llm.BlockText, Text: NamePicture(b.Picture.Path, why)}
			}
		}
	}
}
