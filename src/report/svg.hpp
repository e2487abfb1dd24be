// svg.hpp: a drawing as the text of an SVG file: one font, a background of its own, nothing that
// is loaded from elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace vkgemm::report {

// Told apart by everyone (Okabe and Ito), and dark enough to be read as text on white.
namespace ink {
inline constexpr const char* text = "#1f2328";
inline constexpr const char* faint = "#59636e";
inline constexpr const char* grid = "#e3e7eb";
inline constexpr const char* axis = "#8c959f";
}  // namespace ink

struct Point {
  double x = 0.0, y = 0.0;
};

struct TextStyle {
  double size = 12.0;
  const char* anchor = "start";  // middle, end
  const char* colour = ink::text;
  bool bold = false;
  double turn = 0.0;      // degrees, around the point
  bool outlined = false;  // readable on lines
};

enum class Marker : unsigned char { circle, diamond, triangle };

class Svg {
 public:
  explicit Svg(double width) : width_(width) {}

  void text(Point at, std::string_view text, const TextStyle& style = {});
  void line(Point from, Point to, const char* colour, double width = 1.0, const char* dashes = "");
  void rectangle(Point corner, double width, double height, const char* colour, double round = 0.0);
  // `title` is shown by browsers that point at it.
  void marker(Marker shape, Point at, double radius, const char* colour, std::string_view title);

  double width() const noexcept { return width_; }
  std::string finish(double height) const;

 private:
  double width_;
  std::string body_;
};

// How wide a text will be, about: fonts differ.
double text_width(std::string_view text, double size);

}  // namespace vkgemm::report
