class Texts
  def first
    call(<<~ONE, <<-'TWO')
      def quoted
      class Hidden
    ONE
      def quoted_too
      TWO
  end

  def second(x) = x ? $' : $"

  def third
    %w[a b].each { |s| s =~ %r{def /} }
    a = b / c; d = e / f
    x <<y
  end
end

Point = Struct.new(:x) do
  def length
  end
end
__END__
def after
end
