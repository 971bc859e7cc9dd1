package pictures

import (
	"bytes"
	"encoding/binary"
)

// pngSignature is the beginning of every PNG.
const pngSignature = "\x89PNG\r\n\x1a\n"

// pngNeeds reports whether a PNG can't be shown without a chunk of this type.
func pngNeeds(chunk string) bool {
	switch chunk {
	case "IHDR", "PLTE", "tRNS", "IDAT", "IEND":
		return true
	}
	return false
}

// withoutExtras returns a PNG without the chunks that are not needed to show it, such as a color profile. The
// decoder uses none of them, but rejects a picture in which one is damaged. Bytes that are not a PNG are
// returned unchanged, and so is everything from a truncated chunk on.
func withoutExtras(raw []byte) []byte {
	if !bytes.HasPrefix(raw, []byte(pngSignature)) {
		return raw
	}
	const frame = 12 // bytes of a chunk's length, name and checksum
	slim := append(make([]byte, 0, len(raw)), pngSignature...)
	for left := raw[len(pngSignature):]; len(left) > 0; {
		if len(left) < frame || uint64(binary.BigEndian.Uint32(left))+frame > uint64(len(left)) {
			return append(slim, left...)
		}
		size := int(binary.BigEndian.Uint32(left)) + frame
		if pngNeeds(string(left[4:8])) {
			slim = append(slim, left[:size]...)
		}
		left = left[size:]
	}
	return slim
}
