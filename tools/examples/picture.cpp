// Draws a slice of an array of any size as a PNG, with axes and a colour bar.
//
//     picture FROM SELECTION TO.png      SELECTION: NumPy's slices, such as '12, :, ::2'
#include <tessera/tessera.h>

#include <iostream>

using namespace tessera;

int main(int argc, char** argv) try {
    if (argc != 4) throw invalid_argument("usage: picture FROM SELECTION TO.png");
    const std::unique_ptr<ArraySource> from = open_source(argv[1]);
    const DrawOptions drawing{.map = ColourMap::viridis, .range = "2%,98%", .width = 640, .height = 480};

    // As numbers, no more of them than there are pixels: reads no more than these need.
    const auto [height, width] = drawing_room(drawing);
    const Picture picture = read_picture(*from, {.selection = argv[2], .height = height, .width = width});
    std::cout << picture.name << ' ' << picture.slice << (picture.how.empty() ? "" : ", ") << picture.how << '\n';

    const NDArray pixels = draw_picture(picture, drawing);  // u1, (height, width, 3)
    const auto png = create_array_file({argv[3]}, pixels.dtype(), pixels.shape());
    copy_array(*view_source(pixels.view(), "the drawing"), *png);
    std::cout << "drew " << pixels.shape() << '\n';
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
