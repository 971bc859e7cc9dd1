package pictures

import (
	"bytes"
	"encoding/binary"
)

// pngSignature is what each PNG begins with.
const pngSignature = "\x89PNG\r\n\x1a\n"

// pngNeeds reports whether a chunk of a PNG is needed to show it.
func pngNeeds(chunk string) bool {
	switch chunk {
	case "IHDR", "PLTE", "tRNS", "IDAT", "IEND":
		return true
	}
	return false
}

// withoutExtras returns a PNG without the chunks that are not needed to show it, such as a colour
// profile. The decoder uses none of them, and takes a picture for damaged in which one is. Other bytes
// are returned as they are, and so is what follows a chunk that is cut off.
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
