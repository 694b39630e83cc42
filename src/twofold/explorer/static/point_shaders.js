// What the graphics card runs for each point and each of its pixels.

/** Alpha 0 hides a point. Positions come relative to the middle of the map, so that 32 bits are enough. */
export const POINT_VERTEX_SHADER = `#version 300 es
layout(location = 0) in vec2 position;
layout(location = 1) in vec4 color;
uniform vec4 view;
uniform float diameter;
uniform float opacity;
out vec4 paint;
void main() {
  bool isHidden = color.a == 0.0;
  gl_Position = isHidden ? vec4(2.0, 2.0, 2.0, 1.0) : vec4(position * view.xy + view.zw, 0.0, 1.0);
  // A pixel more than the disc, for its soft edge.
  gl_PointSize = diameter + 1.0;
  paint = vec4(color.rgb, color.a * opacity);
}`;

/**
 * A disc with an edge one pixel soft. Large discs have a rim in the colour of the ground, which keeps
 * neighbours apart; small ones fade instead of shrinking below a pixel.
 */
export const POINT_FRAGMENT_SHADER = `#version 300 es
precision highp float;
in vec4 paint;
uniform float diameter;
uniform float rim;
uniform vec3 ground;
out vec4 pixel;
void main() {
  float distance = length(gl_PointCoord - 0.5) * (diameter + 1.0);
  float radius = 0.5 * diameter;
  float cover = clamp(radius - distance + 0.5, 0.0, 1.0);
  float inner = clamp(radius - rim - distance + 0.5, 0.0, 1.0);
  vec3 color = mix(ground, paint.rgb, rim > 0.0 ? inner : 1.0);
  float alpha = paint.a * cover;
  pixel = vec4(color * alpha, alpha);
}`;
