# class Commented
require 'set'

=begin
def hidden
end
=end

MAX_SIDES = 12
NAMES = %w[def class module end].freeze

module Shapes
  VERSION = "1.0"

  class Error < StandardError; end

  class Point < Struct.new(:x, :y)
    attr_reader :name
    ORIGIN = new(0, 0)

    def initialize(x, y = nil, **options)
      @x = x
      @y = y if y
    end

    def self.make(kind)
      case kind
      when /def regex\(/ then 1
      else
        begin
          2
        rescue
          3
        end
      end
    end

    def empty?
      items.each do |i|
        next unless i
      end
      "end #{x ? "class" : 'def'}"
    end

    def clear!; @x = nil; end

    def name=(value)
      @name = value
    end

    def ==(other)
      x == other.x
    end

    def [](i) = i

    def <=>(other)
      0
    end

    class << self
      def build(*args)
        new(*args)
      end

      private

      def secret
      end
    end

    private def hidden_one
      1
    end

    protected

    def helper
      { class: "x",
        module: 1,
        end: 2 }
    end
  end

  module Deep
    class Nested::Inner
      def go; end
    end

    def self.call(x) = x / 2
  end

  def self.draw(shape)
    puts "drawing" unless shape.nil?
  end
end

def top_level(a, b)
  a << b
end

class Shapes::Extra
  def extra
  end
end
