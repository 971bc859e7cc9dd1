package cluster

import "strconv"

// slotCount is the number of slots over which a Cluster spreads its keys.
const slotCount = 16384

// Slot returns the slot of all keys with that hash tag: the CRC-16 of the tag, as the specification of Redis
// Cluster defines it.
func Slot(tag string) int {
	var crc uint16
	for _, c := range []byte(tag) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slotCount)
}

// Tags returns n hash tags whose slots are spread evenly over all slots, so that each node gets its part. The tags
// for a number are always the same, and the first is always 0.
func Tags(n int) (tags []string) {
	taken := make([]bool, n)
	for i := 0; len(tags) < n; i++ {
		tag := strconv.Itoa(i)
		if at := Slot(tag) * n / slotCount; !taken[at] {
			taken[at] = true
			tags = append(tags, tag)
		}
	}
	return tags
}
