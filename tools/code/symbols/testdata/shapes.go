// Package shapes draws.
package shapes

import "fmt"

// Edges of things.
const (
	MaxSides = 12
	minSides = 3
)

const single, double = 1, 2

var origin = Point{}

var (
	count int
	names = map[string]int{"func hidden() {": 1}
)

// A Shape has an area.
type Shape interface {
	Area() float64
	Scale(by float64) Shape
}

type (
	// A Point is a place.
	Point                     struct{ X, Y float64 }
	Kind                      int
	Pair[K comparable, V any] struct {
		Key   K
		Value V
	}
	Alias = map[string]Point
	Visit func(p Point) error
)

func (p Point) Add(q Point) Point { return Point{p.X + q.X, p.Y + q.Y} }

func (p *Point) move(by float64) {
	const local = 1
	type inner struct{}
	helper := func() {}
	helper()
}

func (p Pair[K, V]) String() string { return fmt.Sprint(p.Key) }

func (*Kind) reset() {}

func New() *Point { return &Point{} }

func Map[T, U any](list []T, f func(T) U) []U { return nil }

func init() {}

/*
func commented() {}
*/
var text = `
func quoted() {}
`
