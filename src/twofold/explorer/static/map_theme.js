// Colours of the map apart from the points.

/** `land` is where the data is, `sea` what lies outside; `halo` keeps lines readable above points. */
export const MAP_THEMES = {
  light: {
    sea: "#f1f1ee", land: "#ffffff", shore: "rgba(27, 30, 35, 0.42)", contour: "rgba(27, 30, 35, 0.22)",
    ink: "#1b1e23", softInk: "#565d68", halo: "rgba(255, 255, 255, 0.92)", accent: "#2a55c4", accentWash: "rgba(42, 85, 196, 0.10)",
    pointGround: [255, 255, 255], plain: [72, 101, 150], none: [168, 172, 178],
  },
  dark: {
    sea: "#111317", land: "#1a1e24", shore: "rgba(236, 238, 241, 0.38)", contour: "rgba(236, 238, 241, 0.19)",
    ink: "#eceef1", softInk: "#a7aeb9", halo: "rgba(17, 19, 23, 0.88)", accent: "#8fb1ff", accentWash: "rgba(143, 177, 255, 0.12)",
    pointGround: [26, 30, 36], plain: [132, 160, 208], none: [98, 104, 114],
  },
};
