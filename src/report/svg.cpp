#include "report/svg.hpp"

#include <array>
#include <cstdio>

namespace vkgemm::report {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 384> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        // XML knows only some of the characters below space.
        escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace

void Svg::text(Point at, std::string_view text, const TextStyle& style) {
  body_ += format("<text x='%.1f' y='%.1f' font-size='%g' fill='%s'", at.x, at.y, style.size,
                  style.colour);
  if (std::string_view(style.anchor) != "start") body_ += format(" text-anchor='%s'", style.anchor);
  if (style.bold) body_ += " font-weight='600'";
  if (style.turn != 0.0)
    body_ += format(" transform='rotate(%.2f %.1f %.1f)'", style.turn, at.x, at.y);
  if (style.outlined) {
    body_ += " stroke='#fff' stroke-width='3' stroke-linejoin='round' paint-order='stroke'";
  }
  body_ += ">" + escape(text) + "</text>\n";
}

void Svg::line(Point from, Point to, const char* colour, double width, const char* dashes) {
  body_ += format("<path d='M%.1f %.1fL%.1f %.1f' stroke='%s' stroke-width='%g'", from.x, from.y,
                  to.x, to.y, colour, width);
  if (*dashes != '\0') body_ += format(" stroke-dasharray='%s'", dashes);
  body_ += "/>\n";
}

void Svg::rectangle(Point corner, double width, double height, const char* colour, double round) {
  body_ += format("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' rx='%g' fill='%s'/>\n",
                  corner.x, corner.y, width, height, round, colour);
}

void Svg::marker(Marker shape, Point at, double radius, const char* colour,
                 std::string_view title) {
  const std::string paint = format("fill='%s' stroke='#fff' stroke-width='0.8'", colour);
  const std::string end = title.empty() ? "/>\n" : "><title>" + escape(title) + "</title>";
  switch (shape) {
    case Marker::circle:
      body_ += format("<circle cx='%.1f' cy='%.1f' r='%.1f' ", at.x, at.y, radius) + paint + end;
      if (!title.empty()) body_ += "</circle>\n";
      return;
    case Marker::diamond: {
      const double r = radius * 1.3;
      body_ += format("<path d='M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ' ", at.x, at.y - r,
                      at.x + r, at.y, at.x, at.y + r, at.x - r, at.y) +
               paint + end;
      break;
    }
    case Marker::triangle: {
      const double r = radius * 1.25;
      body_ += format("<path d='M%.1f %.1fL%.1f %.1fL%.1f %.1fZ' ", at.x, at.y - r, at.x + r,
                      at.y + 0.8 * r, at.x - r, at.y + 0.8 * r) +
               paint + end;
      break;
    }
  }
  if (!title.empty()) body_ += "</path>\n";
}

std::string Svg::finish(double height) const {
  // A background with an edge: GitHub shows the same file on white and on black.
  return format(
             "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' width='%.0f' "
             "height='%.0f' font-family='Helvetica, Arial, \"Liberation Sans\", sans-serif'>\n",
             width_, height, width_, height) +
         format(
             "<rect x='0.5' y='0.5' width='%.0f' height='%.0f' rx='8' fill='#fff' "
             "stroke='#d0d7de'/>\n",
             width_ - 1.0, height - 1.0) +
         body_ + "</svg>\n";
}

double text_width(std::string_view text, double size) {
  double width = 0.0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) continue;  // within a UTF-8 character
    width += c == ' ' || c == ',' || c == '.' || c == 'l' || c == 'i' || c == '1' ? 0.4 : 0.58;
  }
  return width * size;
}

}  // namespace vkgemm::report
