package vectors

import "math"

// A Packed is the direction of a vector: one signed byte for each dimension, of which the largest is 127
// or -127. It takes a quarter of the space of the original numbers, and its likeness to others is about
// the same.
type Packed []byte

// MaxDimensions is the most dimensions of a vector.
const MaxDimensions = 8192

// Pack returns the direction of a vector. It returns nil if there is none, because all its numbers are
// zero or one is not a number, or if it has too many dimensions.
func Pack(vector []float32) Packed {
	largest := 0.0
	for _, x := range vector {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil
		}
		largest = max(largest, math.Abs(float64(x)))
	}
	if largest == 0 || len(vector) > MaxDimensions {
		return nil
	}
	p := make(Packed, len(vector))
	for i, x := range vector {
		p[i] = byte(int8(math.Round(float64(x) / largest * math.MaxInt8)))
	}
	return p
}

// Likeness returns the cosine of the angle between two directions: 1 if they are the same. It is 0 if
// they have different numbers of dimensions.
func (p Packed) Likeness(other Packed) float64 {
	if len(p) != len(other) || len(p) == 0 {
		return 0
	}
	var dot, own, others int32 // they fit: these are sums of at most MaxDimensions squares of 127
	for i, x := range p {
		a, b := int32(int8(x)), int32(int8(other[i]))
		dot, own, others = dot+a*b, own+a*a, others+b*b
	}
	if own == 0 || others == 0 {
		return 0
	}
	return float64(dot) / math.Sqrt(float64(own)*float64(others))
}
